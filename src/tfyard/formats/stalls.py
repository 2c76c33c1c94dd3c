"""How long a job may print nothing, as job files and annotations have it: `15m`, or `15m, then restart`."""

import re
from typing import get_args

from tfyard.model import Stall, StallReaction
from tfyard.model.durations import write_duration

from . import durations
from .declarations.reading import Notes, Path

_ANNOTATION = re.compile(r"([^,]*)(?:, then (\w+))?")


def checked(after: str | int, then: StallReaction, path: Path, notes: Notes) -> Stall | None:
    seconds = durations.read(after, path, notes)
    if seconds == 0:
        notes.error(
            path, "must be at least 1 second", "remove it, and hanging programs are not detected", after
        )
    return Stall(after=seconds, then=then) if seconds else None


def read(text: str, path: Path, notes: Notes) -> Stall | None:
    """The value of the annotation."""
    match = _ANNOTATION.fullmatch(text)
    word = match[2] or "report" if match else ""
    for then in get_args(StallReaction):
        if match and then == word:
            return checked(match[1], then, path, notes)
    fix = 'for example "15m", or "15m, then restart"'
    notes.error(path, "must be a duration, and may say what happens then", fix, text)
    return None


def write(stall: Stall) -> str:
    """The value of the annotation."""
    after = write_duration(stall.after)
    return after if stall.then == "report" else f"{after}, then {stall.then}"
