"""Waits for a job at the terminal: each change is printed to standard error."""

import math
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.overview import job_table, waiting

if TYPE_CHECKING:
    from tfyard.sdk.place import Place


def until(place: "Place", goal: str, fail_on: tuple[str, ...], deadline: float) -> waiting.Verdict:
    """A run on this machine knows what it ended with, also if it was interrupted."""
    last = ""
    for job in place.states(deadline):
        if job is None:
            return waiting.deleted(place.name)
        if over := waiting.verdict(job, goal, fail_on):
            return replace(over, code=place.exit_code() or over.code) if over.code else over
        now = job_table.state(job) or "Pending"
        if now != last:
            click.echo(f"{place.name}: {now}", err=True)
        last = now
    return waiting.timed_out(place.name, goal, last)


def seconds(text: str) -> float:
    """Of `--timeout`; without one, for ever."""
    if not text:
        return math.inf
    from tfyard.formats import durations

    found = durations.parse(text)
    if found is None:
        raise Usage(f"--timeout {text}: must be a duration, for example 90s, 5m or 1h30m")
    return found
