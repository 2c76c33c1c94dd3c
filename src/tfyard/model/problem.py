"""A problem in a user's file.

Problems are data, not exceptions, so that all problems of a file can be collected and reported at once.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

FieldPath = tuple[str | int, ...]

# Maps whose keys users choose: Kubernetes' own messages put such keys into brackets, even if a dot would do.
_MAPS_BY_NAME = frozenset({"tfReplicaSpecs"})
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


class Position(msgspec.Struct, frozen=True):
    """A line and a column in a text. Both start at 1; columns count characters, as editors do."""

    line: int
    column: int


class Problem(msgspec.Struct, frozen=True):
    """`value` is UNSET if no single value is wrong, because None is a value that users write."""

    path: FieldPath
    message: str
    fix: str = ""
    value: Any = msgspec.UNSET
    severity: Literal["error", "warning"] = "error"
    position: Position | None = None


def format_path(path: Sequence[str | int]) -> str:
    """The path in the notation of the API server's messages, so that one search finds both."""
    parts: list[str] = []
    for number, step in enumerate(path):
        chosen_by_user = number > 0 and path[number - 1] in _MAPS_BY_NAME
        if isinstance(step, int) or chosen_by_user or not _PLAIN_KEY.match(step):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step}" if parts else step)
    return "".join(parts)
