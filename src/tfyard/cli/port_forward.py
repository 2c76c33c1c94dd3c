"""`tfyard port-forward`: forwards ports of 127.0.0.1 to a task."""

import re
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import click

from tfyard.cli import cluster, interrupts, offers, target
from tfyard.errors import Usage
from tfyard.sdk.forwarding import HOST, read_ports
from tfyard.sdk.pages import Ports

PORT = re.compile(r"\d*:?\d+")


@click.command("port-forward")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument(
    "words", metavar="[TASK] [LOCAL:]PORT...", nargs=-1, required=True, shell_complete=offers.tasks
)
@cluster.job_options
def command(name: str, words: tuple[str, ...], **options: Any) -> None:
    """Make ports of a task reachable at 127.0.0.1, until Ctrl-C or until the job ends.

    LOCAL is the local port; default: the same number, and with `:PORT` any that is free. Each connection goes to
    the current pod of the task, so a restarted task is reached at the same address. TASK may be left out if the
    job has only one.

    \b
    Examples:
      tfyard port-forward mnist worker-0 6006
      tfyard port-forward mnist worker-0 8080:80 :2222
    """
    split = 0 if PORT.fullmatch(words[0]) else 1
    if not words[split:]:
        raise Usage(f"the port is missing: tfyard port-forward {name} {words[0]} PORT")
    ports = read_ports(words[split:])
    making = target.find(name, options).port_forward(words[:split], ports)
    target.say(interrupts.run(_forward(making)))


async def _forward(making: AbstractAsyncContextManager[Ports]) -> str:
    """Print the forwarded ports and wait; the result says why forwarding ended."""
    async with making as made:
        for port in made.bound:
            click.echo(f"Forwarding from {HOST}:{port.local} -> {port.remote}")
        sys.stdout.flush()
        return await made.over
