"""Durations as Python programs give them: `"2h"`, as in the terminal, or seconds, or a timedelta."""

from datetime import timedelta

from tfyard.errors import Usage
from tfyard.formats import durations


def seconds(given: str | float | timedelta) -> float:
    if isinstance(given, timedelta):
        return given.total_seconds()
    if not isinstance(given, str):
        return float(given)
    found = durations.parse(given)
    if found is None:
        raise Usage(f"{given!r} must be a duration, for example 90s, 5m or 1h30m, or a number of seconds")
    return float(found)
