"""`tfyard wait`: waits until jobs have succeeded, run or have ended; for scripts."""

import sys
import time
from typing import Any

import click

from tfyard.cli import cluster, output, several
from tfyard.cli.waiting import seconds, until
from tfyard.overview import waiting
from tfyard.overview.wording import harmless


@click.command("wait")
@several.names_argument
@several.selector_option
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
    help="Exit with 1 when the server rejects pods (blocked), a pod cannot start (waiting), or a program hangs"
    " (stalled).",
)
@output.text_or_json
@cluster.job_options
def command(
    names: tuple[str, ...], goal: str, timeout: str, fail_on: tuple[str, ...], **options: Any
) -> None:
    """Wait until all of these jobs have succeeded, run, or have ended in any way. Each change is printed to
    standard error.

    Exit codes: 0 the state was reached; 1 a job failed, with whatever code (with --for finished: 0); 2 an error,
    such as an unknown name; 3 a job was deleted; 124 timed out. Of several jobs, the highest. `-o json` has the
    exit code of the task that failed.

    \b
    Examples:
      tfyard wait mnist                           # until it succeeds, or fails
      tfyard wait mnist --for running --timeout 10m --fail-on blocked --fail-on waiting
      tfyard wait -l team=vision --for finished && tfyard get -l team=vision
    """
    deadline, results = time.monotonic() + seconds(timeout), list[dict[str, Any]]()
    for place in several.places(names, options):  # one after another: the last of them ends the wait
        result = until(place, goal, fail_on, deadline)
        code = (
            min(result.code, 1) if result.is_of_program else result.code
        )  # never taken for one of a program
        results.append({"job": place.title, "code": code, "exitCode": result.code, "message": result.text})
        if options["output"] == "text":
            click.echo(harmless(result.text), err=code != 0)
    if options["output"] == "json":
        output.print_answers(results, single=len(names) == 1)
    sys.exit(max(result["code"] for result in results))
