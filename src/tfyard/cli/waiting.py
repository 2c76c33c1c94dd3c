"""Waits for a job at the terminal: each change is told on standard error."""

import math
import time
from collections.abc import Iterator

import click
from msgspec.structs import replace

from tfyard.cli import target
from tfyard.errors import Usage
from tfyard.model.summary import JobSummary
from tfyard.overview import job_table, waiting

LOOK_EVERY = 0.5
"""Seconds between two looks at a run of this machine."""


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
