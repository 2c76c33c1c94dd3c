"""The list of conditions by upstream's rules, except those that let a job be Succeeded and Failed at once.

The list is in order of last change, because clients show the last one as the job's state.
"""

from datetime import datetime
from typing import Literal

import msgspec

from tfyard.model import Condition, shortened

from .reasons import BLOCKED, FAILED, RESTARTING, RUNNING, STALLED, SUCCEEDED, SUSPENDED, WAITING

Conditions = tuple[Condition, ...]

_REPLACES = {RUNNING: RESTARTING, RESTARTING: RUNNING}
_ENDS = (SUCCEEDED, FAILED)
_NEWS = (BLOCKED, WAITING, RESTARTING, STALLED)
_HELD = (BLOCKED, WAITING)
"""Conditions that say what a job waits for."""


def put(
    conditions: Conditions, type: str, reason: str, message: str, now: datetime, *, holds: bool = True
) -> Conditions:
    """Set a condition. The same status for the same reason is no change and causes no write, except for conditions
    whose message says more than their reason."""
    status: Literal["True", "False"] = "True" if holds else "False"
    message = shortened(message)
    old = next((c for c in conditions if c.type == type), None)
    if old is not None and (old.status, old.reason) == (status, reason) and not _is_news(old, message):
        return conditions
    since = old.last_transition_time if old is not None and old.status == status else now
    new = Condition(type, status, reason, message, now, since)
    others = tuple(c for c in conditions if c.type not in (type, _REPLACES.get(type) if holds else None))
    return _urgent_last((*(_ended(others) if type in _ENDS else others), new))


def phase(conditions: Conditions) -> str:
    """The type of the last condition that holds. The phase is Blocked or Waiting only while the job does not run:
    a job with one of two workers runs and waits, and the condition's message says what is missing."""
    holding = [c.type for c in conditions if c.status == "True"]
    going = [type for type in holding if type not in _HELD]
    held = [type for type in _HELD if type in holding]
    if held and not {RUNNING, SUSPENDED, *_ENDS} & {*going}:
        return held[0]
    return going[-1] if going else ""


def _is_news(old: Condition, message: str) -> bool:
    return old.type in _NEWS and old.message != message


def _urgent_last(conditions: Conditions) -> Conditions:
    """Conditions with those last that the user has to act on, while they hold: tables show the last message. A
    wait that is over keeps its message, and must not be the last."""
    return tuple(sorted(conditions, key=_urgency))


def _urgency(condition: Condition) -> int:
    if condition.status == "True":
        return {BLOCKED: 2, WAITING: 1, STALLED: 1}.get(condition.type, 0)
    return -1 if condition.type in (WAITING, STALLED) else 0


def _ended(conditions: Conditions) -> Conditions:
    """Conditions of a finished job, which does not run, restart or wait; only their status changes."""
    return tuple(
        msgspec.structs.replace(c, status="False")
        if c.type in (RUNNING, RESTARTING, BLOCKED, WAITING, STALLED)
        else c
        for c in conditions
    )
