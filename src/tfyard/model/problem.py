"""One thing that is wrong with what a user wrote.

Problems are data, not exceptions, so that a file's faults can be collected and told all at once.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

FieldPath = tuple[str | int, ...]

# Keys that users choose, not Kubernetes: its own messages put these into brackets even where a dot would do.
_MAPS_BY_NAME = frozenset({"tfReplicaSpecs"})
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


class Position(msgspec.Struct, frozen=True):
    """A line and a column in a text. Both start at 1; columns count characters, as editors do."""

    line: int
    column: int


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, where, and what to do about it.

    `value` stays UNSET where there is no offending value, because None is a value that users write.
    """

    path: FieldPath
    message: str
    fix: str = ""
    value: Any = msgspec.UNSET
    severity: Literal["error", "warning"] = "error"
    position: Position | None = None


def format_path(path: Sequence[str | int]) -> str:
    """The form that the API server uses in its own messages, so both can be searched for alike."""
    parts: list[str] = []
    for number, step in enumerate(path):
        chosen_by_user = number > 0 and path[number - 1] in _MAPS_BY_NAME
        if isinstance(step, int) or chosen_by_user or not _PLAIN_KEY.match(step):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step}" if parts else step)
    return "".join(parts)
