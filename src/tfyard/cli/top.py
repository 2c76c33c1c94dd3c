"""`tfyard top`: shows the CPU, memory and progress of the tasks of a job."""

import sys
import time
from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import replace

from tfyard.cli import cluster, offers, output, target
from tfyard.errors import Usage
from tfyard.overview import table, top
from tfyard.overview.attempts import UNDER_WAY
from tfyard.overview.top import TaskUse
from tfyard.sdk.place import Meter

CLEAR = "\x1b[H\x1b[2J"


@click.command("top")
@click.argument("name", metavar="[JOB]", default="", shell_complete=offers.jobs)
@click.option("-w", "--watch", is_flag=True, help="Refresh until Ctrl-C, or until nothing runs.")
@click.option(
    "--interval",
    type=click.FloatRange(0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Refresh interval of --watch.",
)
@output.text_or_json
@cluster.job_options
def command(name: str, watch: bool, interval: float, **options: Any) -> None:
    """Show each task of a job: CPU and memory (on a cluster from its metrics API), and from its log: step, steps
    per second, loss, remaining time. Without JOB: the tasks of all running jobs.

    \b
    Examples:
      tfyard top mnist
      tfyard top -w
      tfyard top @latest --local -w
    """
    meters = {"": target.find(name, options).meter()} if name else _all_that_run(options)
    while True:
        rows = [use for title, meter in meters.items() for use in _named(meter, title)]
        if options["output"] == "json":
            output.print_json([top.plain(use) for use in rows])
        else:
            _print(rows, watch)
        if not watch or not any(use.state in UNDER_WAY for use in rows):
            break
        time.sleep(interval)
    for problem in dict.fromkeys(meter.problem for meter in meters.values() if meter.problem):
        target.say(problem)


def _all_that_run(options: Mapping[str, Any]) -> dict[str, Meter]:
    running = [place for jobs in target.lists(options) for place in jobs.running()]
    if not running:
        raise Usage("nothing runs here; `tfyard get` lists all jobs and runs")
    return {place.name: place.meter() for place in running}


def _named(meter: Meter, title: str) -> list[TaskUse]:
    return [replace(use, task=f"{title}/{use.task}") if title else use for use in meter.tasks()]


def _print(rows: list[TaskUse], watch: bool) -> None:
    if watch and sys.stdout.isatty():
        click.echo(CLEAR, nl=False)
    if rows:
        click.echo("\n".join(table.lines([top.COLUMNS, *map(top.row, rows)])))
    else:
        target.say("there are no pods")
