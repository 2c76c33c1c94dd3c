"""The status of a TFJob object <-> Status."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tfyard.errors import Invalid
from tfyard.model import Condition, Manifest, Problem, Status

_INDEX = r"[0-9]{1,9}"
_INDEXES = re.compile(rf"({_INDEX}(-{_INDEX})?(,{_INDEX}(-{_INDEX})?)*)?")
_PLACE = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)


def load_status(document: Manifest) -> Status:
    """What is remembered of a job. Fields that other operators wrote and we do not know are passed over;
    Invalid, with every place, if it is not what we could have written: half a memory is worse than none."""
    raw = document.get("status") or {}
    if isinstance(raw, dict):
        if "state" in raw:
            return _from_v1alpha1(raw)
        raw = {key: value for key, value in raw.items() if value is not None}
    status = _convert(raw)
    if isinstance(status, str):
        raise Invalid(list(_misshapen(raw)))
    if problems := list(_nonsense(status)):
        raise Invalid(problems)
    return status


def dump_status(status: Status) -> dict[str, Any]:
    """What was decided once is written in full: an empty mapping would mean whatever is the default later."""
    plain: dict[str, Any] = msgspec.to_builtins(status)
    if status.cluster is not None:
        kept = status.cluster
        plain["cluster"] = {"services": kept.services, "dialect": kept.dialect, **plain["cluster"]}
    return plain


def _from_v1alpha1(raw: Manifest) -> Status:
    """It had a state and no conditions. What was finished then must not be run again now."""
    state = "Failed" if raw.get("phase") == "Failed" else raw["state"]
    if state not in ("Succeeded", "Failed"):
        return Status()
    message = str(raw.get("reason") or f"{state} under v1alpha1.")
    return Status(conditions=(Condition(state, "True", reason=f"TFJob{state}", message=message),))


def _convert(raw: Any) -> Status | str:
    """Or what msgspec has against it."""
    try:
        return msgspec.convert(raw, Status)
    except msgspec.ValidationError as error:
        return str(error)


def _misshapen(raw: Any) -> Iterator[Problem]:
    """msgspec stops at the first error, so each part is asked on its own."""
    for part in _parts(raw):
        told = _convert(part)
        if isinstance(told, str):
            yield _place(told, part)


def _parts(raw: Any) -> Iterator[Any]:
    """Statuses of a single field each, and of a single role in it: whose fault it is shows itself then."""
    if not isinstance(raw, dict):
        yield raw
        return
    for name, value in raw.items():
        if name in ("tasks", "replicaStatuses") and isinstance(value, dict):
            yield from ({name: {role: kept}} for role, kept in value.items())
        else:
            yield {name: value}


def _place(told: str, part: Any) -> Problem:
    """msgspec calls each key of a mapping `[...]`; the first one is the role, of which there is but one."""
    found = _PLACE.fullmatch(told)
    if found is None:
        return Problem(("status",), told)
    message, where = found.groups()
    roles = [role for value in part.values() if isinstance(value, dict) for role in value]
    steps: list[str | int] = ["status"]
    for name, number in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", where):
        unnamed = roles.pop() if number == "..." and roles else "*"
        steps.append(name or (int(number) if number.isdigit() else unnamed))
    return Problem(tuple(steps), message)


def _nonsense(status: Status) -> Iterator[Problem]:
    """Of the right types, and still no memory: a schema cannot look into texts and keys."""
    for role, memory in status.tasks.items():
        path = ("status", "tasks", role)
        keys = [("attempts", index) for index in memory.attempts]
        for field, index in (*keys, *(("backoff", index) for index in memory.backoff)):
            if not re.fullmatch(_INDEX, index):
                yield Problem((*path, field, index), "must be an index such as 7")
        if not _INDEXES.fullmatch(memory.finished):
            yield Problem((*path, "finished"), f"must be indexes such as 0-2,7, not {memory.finished!r}")
