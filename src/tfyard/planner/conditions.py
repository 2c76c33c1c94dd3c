"""The conditions list by upstream's rules, minus those that let a job be Succeeded and Failed at once.

The list is in order of last change, because clients show the last one as the job's state.
"""

from datetime import datetime
from typing import Literal

import msgspec

from tfyard.model import Condition

from .reasons import BLOCKED, FAILED, RESTARTING, RUNNING, SUCCEEDED

Conditions = tuple[Condition, ...]

_REPLACES = {RUNNING: RESTARTING, RESTARTING: RUNNING}
_ENDS = (SUCCEEDED, FAILED)


def put(
    conditions: Conditions, type: str, reason: str, message: str, now: datetime, *, holds: bool = True
) -> Conditions:
    """Set a condition. The same state for the same reason is no change, so no write follows from it."""
    status: Literal["True", "False"] = "True" if holds else "False"
    old = next((c for c in conditions if c.type == type), None)
    if old is not None and (old.status, old.reason) == (status, reason):
        return conditions
    since = old.last_transition_time if old is not None and old.status == status else now
    new = Condition(type, status, reason, message, now, since)
    rest = tuple(c for c in conditions if c.type not in (type, _REPLACES.get(type) if holds else None))
    return (*(_ended(rest) if type in _ENDS else rest), new)


def phase(conditions: Conditions) -> str:
    holding = [c.type for c in conditions if c.status == "True" and c.type != BLOCKED]
    return holding[-1] if holding else ""


def _ended(conditions: Conditions) -> Conditions:
    """A finished job neither runs nor restarts; everything else about those conditions stays as it was."""
    return tuple(
        msgspec.structs.replace(c, status="False") if c.type in (RUNNING, RESTARTING) else c
        for c in conditions
    )
