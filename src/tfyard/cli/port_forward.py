"""`tfyard port-forward`: ports of a task at 127.0.0.1."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.errors import TfyardError, Usage
from tfyard.extras import needs

if TYPE_CHECKING:
    from tfyard.remote.forwarding import Port

PORT = re.compile(r"\d*:?\d+")


@click.command("port-forward")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument(
    "words", metavar="[TASK] [LOCAL:]PORT...", nargs=-1, required=True, shell_complete=offers.tasks
)
@cluster.job_options
def command(name: str, words: tuple[str, ...], **options: Any) -> None:
    """Make ports of a task reachable at 127.0.0.1, until Ctrl-C or until the job ends.

    LOCAL is the port here; default: the same, and with `:PORT` any that is free. Each connection goes to the pod
    that the task has when it comes, so a task that is restarted is reached again at the same address. TASK may be
    left out if the job has only one.

    \b
    Examples:
      tfyard port-forward mnist worker-0 6006
      tfyard port-forward mnist worker-0 8080:80 :2222
    """
    split = 0 if PORT.fullmatch(words[0]) else 1
    if not words[split:]:
        raise Usage(f"the port is missing: tfyard port-forward {name} {words[0]} PORT")
    found = target.find(name, options)
    if isinstance(found, target.LocalRun):
        raise Usage(f"{found.record.name} runs on this machine: its ports are at 127.0.0.1 already")
    with needs("kubernetes", "tfyard port-forward"):
        from tfyard.remote import forwarding
    _start(found, words[:split], forwarding.read_ports(words[split:]))


def _start(found: target.ClusterJob, words: tuple[str, ...], ports: list[Port]) -> None:
    from tfyard.cli import interrupts
    from tfyard.remote import tasks

    job = found.found
    if job.summary.status.is_finished:
        more = f"`tfyard tensorboard {job.name}` shows its summaries, `tfyard cp` gets its files"
        raise TfyardError(f"{job.name} has ended, its tasks have no ports any more; {more}")
    task = tasks.only(words, tasks.names(job))
    found.client.close()
    target.say(interrupts.run(_forward(found, task, ports)))
    sys.exit(0)


async def _forward(found: target.ClusterJob, task: str, ports: list[Port]) -> str:
    """Why it ended."""
    import asyncio

    from tfyard.kube import Client
    from tfyard.remote import forwarding, pod_follow
    from tfyard.sdk import pages

    async with (
        Client(found.client.access) as client,
        pages.task_ports(client, found.found, task, ports, target.say) as (made, watching),
    ):
        for port in made.bound:
            click.echo(f"Forwarding from {forwarding.HOST}:{port.local} -> {port.remote}")
        sys.stdout.flush()
        ending = asyncio.ensure_future(pod_follow.until_ended(client, found.found))
        try:
            parts: list[asyncio.Future[Any]] = [watching, ending, made.refusal]
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            if made.refusal in done:
                raise made.refusal.result()
            if watching in done:
                watching.result()
            return ending.result().text
        finally:
            await pages.stop(ending)
