"""Durations of users: `"2h"`, as in the terminal, seconds, or a timedelta."""

from datetime import timedelta

from tfyard.errors import Usage
from tfyard.formats import durations


def seconds(value: str | float | timedelta, what: str, more: str = "") -> float:
    """Seconds of a duration. `what` names the argument in the error, `more` lists other allowed values."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not isinstance(value, str):
        return float(value)
    parsed = durations.parse(value)
    if parsed is None:
        raise Usage(f"{what} {value}: must be a duration, for example 90s, 5m or 1h30m{more}")
    return float(parsed)
