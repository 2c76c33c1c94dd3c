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
    """Set a condition. The same status for the same reason is no change, so it causes no write."""
    status: Literal["True", "False"] = "True" if holds else "False"
    old = next((c for c in conditions if c.type == type), None)
    if old is not None and (old.status, old.reason) == (status, reason):
        return conditions
    since = old.last_transition_time if old is not None and old.status == status else now
    new = Condition(type, status, reason, message, now, since)
    rest = tuple(c for c in conditions if c.type not in (type, _REPLACES.get(type) if holds else None))
    return _blocked_last((*(_ended(rest) if type in _ENDS else rest), new))


def phase(conditions: Conditions) -> str:
    """The last condition that holds. Blocked is the job's phase only while it does not run: with one worker of
    two it is both, and the condition's message says what is missing."""
    holding = [c.type for c in conditions if c.status == "True"]
    going = [type for type in holding if type != BLOCKED]
    if BLOCKED in holding and not {RUNNING, SUSPENDED, *_ENDS} & {*going}:
        return BLOCKED
    return going[-1] if going else ""


def _blocked_last(conditions: Conditions) -> Conditions:
    """While it holds: tables show the last message, and this is the one that somebody has to act on."""
    return tuple(sorted(conditions, key=lambda c: c.type == BLOCKED and c.status == "True"))


def _ended(conditions: Conditions) -> Conditions:
    """A finished job does not run, restart or wait; reason, message and times of these conditions stay."""
    return tuple(
        msgspec.structs.replace(c, status="False") if c.type in (RUNNING, RESTARTING, BLOCKED) else c
        for c in conditions
    )
