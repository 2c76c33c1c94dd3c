"""`tfyard wait`: waits until a job has succeeded, runs or has ended; for scripts."""

import sys
import time
from typing import Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.cli.waiting import seconds, until
from tfyard.overview import waiting
from tfyard.overview.wording import harmless


@click.command("wait")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option(
    "--for",
    "goal",
    type=click.Choice(waiting.GOALS),
    default="succeeded",
    show_default=True,
    help="State to wait for; finished: succeeded or failed.",
)
@click.option(
    "--timeout", default="", metavar="TIME", help="Wait no longer than this: 90s, 10m, 2h; default: no limit."
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice([*waiting.OBSTACLES]),
    help="Exit with 1 when the server rejects pods (blocked), or when a pod cannot start (waiting).",
)
@cluster.job_options
def command(name: str, goal: str, timeout: str, fail_on: tuple[str, ...], **options: Any) -> None:
    """Wait until a job has succeeded, runs, or has ended in any way. Each change is printed to standard error.

    Exit codes: 0 the state was reached; 3 the job was deleted; 124 timed out; if the job failed, the code of the
    task that failed (with --for finished: 0).

    \b
    Examples:
      tfyard wait mnist                           # until it succeeds, or fails
      tfyard wait mnist --for running --timeout 10m --fail-on blocked --fail-on waiting
      tfyard wait @latest --for finished && tfyard get @latest
    """
    deadline = time.monotonic() + seconds(timeout)
    result = until(target.find(name, options), goal, fail_on, deadline)
    click.echo(harmless(result.text), err=result.code != 0)
    sys.exit(result.code)
