"""`tfyard wait`: until a job succeeds, runs or is over; for scripts."""

import math
import sys
import time
from collections.abc import Iterator
from typing import Any

import click
from msgspec.structs import replace

from tfyard.cli import cluster, offers, target
from tfyard.errors import Usage
from tfyard.model.summary import JobSummary
from tfyard.overview import job_table, waiting
from tfyard.overview.wording import harmless

LOOK_EVERY = 0.5
"""Seconds between two looks at a run of this machine."""


@click.command("wait")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option(
    "--for",
    "goal",
    type=click.Choice(waiting.GOALS),
    default="succeeded",
    show_default=True,
    help="What to wait for; finished: succeeded or failed.",
)
@click.option("--timeout", default="", metavar="TIME", help="For example 90s, 10m, 2h; default: none.")
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(waiting.OBSTACLES),
    help="End with 1 when the server refuses its pods, or when a pod cannot start.",
)
@cluster.job_options
def command(name: str, goal: str, timeout: str, fail_on: tuple[str, ...], **options: Any) -> None:
    """Wait until a job has succeeded, runs, or has ended in any way. Each change is told on standard error.

    Exit codes: 0 it is so; 3 the job was deleted; 124 the time is over; if the job failed, the code of the task
    that failed (with --for finished: 0).

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


def until(found: target.Target, goal: str, fail_on: tuple[str, ...], deadline: float) -> waiting.Verdict:
    """Each change is told."""
    last, name = "", target.name_of(found)
    for job in _states(found, deadline):
        if job is None:
            return waiting.deleted(name)
        if over := waiting.verdict(job, goal, fail_on):
            return _with_own_code(over, found)
        now = job_table.state(job) or "Pending"
        if now != last:
            click.echo(f"{name}: {now}", err=True)
        last = now
    return waiting.timed_out(name, goal, last)


def _with_own_code(over: waiting.Verdict, found: target.Target) -> waiting.Verdict:
    """A run knows what it ended with, also if it was interrupted."""
    record = found.directory.load() if isinstance(found, target.LocalRun) else None
    return replace(over, code=record.exit_code) if over.code and record and record.exit_code else over


def _states(found: target.Target, deadline: float) -> Iterator[JobSummary | None]:
    """Now and after each change, until the deadline; None: the job is gone."""
    if isinstance(found, target.LocalRun):
        return _run_states(found, deadline)
    from tfyard.remote import jobs

    return jobs.follow(found.client, found.found, deadline)


def _run_states(run: target.LocalRun, deadline: float) -> Iterator[JobSummary | None]:
    from tfyard.local import runs

    while time.monotonic() < deadline:
        record = run.directory.load() if run.directory.path.exists() else None
        yield None if record is None else runs.summary(run.directory, record)
        time.sleep(max(0.0, min(LOOK_EVERY, deadline - time.monotonic())))


def seconds(text: str) -> float:
    """Of `--timeout`; without one, for ever."""
    if not text:
        return math.inf
    from tfyard.formats import durations
    from tfyard.formats.declarations.reading import Notes

    found = durations.read(text, (), Notes())
    if found is None:
        raise Usage(f"--timeout {text}: must be a duration, for example 90s, 5m or 1h30m")
    return found
