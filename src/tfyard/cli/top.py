"""`tfyard top`: what a job's tasks use, how far they are and how fast."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

import click
from msgspec.structs import replace

from tfyard.cli import cluster, offers, target
from tfyard.errors import Usage
from tfyard.overview import table, top
from tfyard.overview.top import TaskUse

CLEAR = "\x1b[H\x1b[2J"


class Source(Protocol):
    problem: str

    def tasks(self) -> list[TaskUse]: ...


@click.command("top")
@click.argument("name", metavar="[JOB]", default="", shell_complete=offers.jobs)
@click.option("-w", "--watch", is_flag=True, help="Refresh until Ctrl-C, or until nothing runs.")
@click.option(
    "--interval", type=click.FloatRange(0.2), default=2.0, show_default=True, metavar="SECONDS", help="Of -w."
)
@cluster.job_options
def command(name: str, watch: bool, interval: float, **options: Any) -> None:
    """Show each task of a job: CPU and memory (of a cluster by its metrics API), step, steps per second, loss, and
    the time that is left, as its log tells. Without JOB: of all that run.

    \b
    Examples:
      tfyard top mnist
      tfyard top -w
      tfyard top @latest --local -w
    """
    sources = _sources(name, options)
    while True:
        rows = [use for title, source in sources.items() for use in _named(source, title)]
        _print(rows, watch)
        if not watch or not any(use.state in ("Running", "Waiting") for use in rows):
            break
        time.sleep(interval)
    for problem in dict.fromkeys(source.problem for source in sources.values() if source.problem):
        target.say(problem)


def _sources(name: str, options: Mapping[str, Any]) -> dict[str, Source]:
    """Title -> where its tasks are asked for; a single one has no title."""
    if name:
        return {"": _source(target.find(name, options))}
    found = {run.record.name: _source(run) for run in target.all_runs() if run.record.ended is None}
    if not options["local"] and cluster.is_configured(options):
        found |= _running_jobs(options)
    if not found:
        raise Usage("nothing runs here; `tfyard get` lists all jobs and runs")
    return found


def _running_jobs(options: Mapping[str, Any]) -> dict[str, Source]:
    from tfyard.remote import jobs

    client = cluster.connect(options)
    rows = jobs.summaries(client, jobs.Scope(client.access.namespace))
    going = [row.job.name for row in rows if not row.job.status.is_finished]
    return {
        name: _source(target.find(name, {**options, "namespace": client.access.namespace})) for name in going
    }


def _source(found: target.Target) -> Source:
    if isinstance(found, target.LocalRun):
        from tfyard.local.usage import RunUsage

        return RunUsage(found.directory)
    from tfyard.remote.usage import JobUsage

    return JobUsage(found.client, found.found)


def _named(source: Source, title: str) -> list[TaskUse]:
    return [replace(use, task=f"{title}/{use.task}") if title else use for use in source.tasks()]


def _print(rows: list[TaskUse], watch: bool) -> None:
    if watch and sys.stdout.isatty():
        click.echo(CLEAR, nl=False)
    if rows:
        click.echo("\n".join(table.lines([top.COLUMNS, *map(top.row, rows)])))
    else:
        target.say("there are no pods")
