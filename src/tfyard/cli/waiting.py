"""Waits for a job at the terminal: each change is printed to standard error."""

import math
from typing import TYPE_CHECKING

import click

from tfyard.overview import job_table, waiting
from tfyard.sdk import durations

if TYPE_CHECKING:
    from tfyard.sdk.place import Place


def until(place: "Place", goal: str, fail_on: tuple[str, ...], deadline: float) -> waiting.WaitResult:
    """Print each state of a job until the goal or the deadline."""
    last = ""
    for job in place.states(deadline):
        if job is None:
            return waiting.deleted(place.name)
        if over := waiting.verdict(job, goal, fail_on):
            return over
        now = job_table.state(job)
        if now != last:
            click.echo(f"{place.name}: {now}", err=True)
        last = now
    return waiting.timed_out(place.name, goal, last)


def seconds(text: str) -> float:
    """Seconds of `--timeout`; infinity if it is not given."""
    if not text:
        return math.inf
    return durations.seconds(text, "--timeout")
