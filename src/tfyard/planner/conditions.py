"""The conditions list by upstream's rules, minus those that let a job be Succeeded and Failed at once.

The list is in order of last change, because clients show the last one as the job's state.
"""

from datetime import datetime
from typing import Literal

import msgspec

from tfyard.model import Condition

from .reasons import BLOCKED, FAILED, RESTARTING, RUNNING, SUCCEEDED, SUSPENDED

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
    return _blocked_last((*(_ended(rest) if type in _ENDS else rest), new))


def phase(conditions: Conditions) -> str:
    """The last one that holds. What stands in the way is the job's state only as long as it does not run: with
    one worker of two it does both, and the message tells the rest."""
    holding = [c.type for c in conditions if c.status == "True"]
    going = [type for type in holding if type != BLOCKED]
    if BLOCKED in holding and not {RUNNING, SUSPENDED, *_ENDS} & {*going}:
        return BLOCKED
    return going[-1] if going else ""


def _blocked_last(conditions: Conditions) -> Conditions:
    """As long as it holds: the last message is the one that tables show, and this one asks for a deed."""
    return tuple(sorted(conditions, key=lambda c: c.type == BLOCKED and c.status == "True"))


def _ended(conditions: Conditions) -> Conditions:
    """A finished job neither runs nor restarts nor waits; all else about those conditions stays as it was."""
    return tuple(
        msgspec.structs.replace(c, status="False") if c.type in (RUNNING, RESTARTING, BLOCKED) else c
        for c in conditions
    )
