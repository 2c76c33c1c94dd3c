"""Durations as people write them: `90`, `90s`, `5m`, `1h30m`, `2d`."""

import re

from tfyard.model.durations import UNITS

from .declarations.reading import Notes, Path

PATTERN = r"^(?=\d)(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s?)?$"
LONGEST = 2**31 - 1
"""68 years, the largest TTL of a TFJob; some users write it for `never`. Any date plus this is a valid date."""


def read(value: str | int, path: Path, notes: Notes) -> int | None:
    """Number of seconds, or None if the value is not a duration."""
    text = str(value).strip().lower()
    parts = re.findall(r"(\d+)([wdhms]?)", text)
    if not parts or not re.fullmatch(PATTERN, text):
        notes.error(path, "must be a duration", 'for example 90s, 5m, 1h30m or "2d"', value)
        return None
    seconds = sum(int(number.lstrip("0")[:12] or 0) * UNITS[unit or "s"] for number, unit in parts)
    if seconds > LONGEST:
        notes.error(path, "must be at most 68 years", "", value)
        return None
    return seconds


def parse(text: str) -> int | None:
    """Number of seconds of a duration outside of a document: an option, or an argument in a Python program."""
    return read(text, (), Notes())
