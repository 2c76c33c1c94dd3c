"""Durations as people write them: `90`, `90s`, `5m`, `1h30m`, `2d`."""

import re

from .declarations.reading import Notes, Path

UNITS = {"w": 7 * 86_400, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
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


def write(seconds: int) -> str:
    """The shortest form, as a person would write it."""
    text = ""
    for unit, size in list(UNITS.items())[1:]:
        count, seconds = divmod(seconds, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"
