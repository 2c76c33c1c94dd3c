"""The status of a TFJob object <-> Status."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from tfyard.errors import Invalid
from tfyard.model import Condition, Manifest, Problem, Status

_INDEX = r"[0-9]{1,9}"
_INDEXES = re.compile(rf"({_INDEX}(-{_INDEX})?(,{_INDEX}(-{_INDEX})?)*)?")
_DECODER = msgspec.json.Decoder(Status)
_ERROR = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)


def load_status(document: Manifest) -> Status:
    """The status, without unknown fields that other operators wrote. Raises `Invalid` with every problem if a
    known field has a value that tfyard never writes: a decision from half a status would be worse than none."""
    raw = document.get("status") or {}
    if isinstance(raw, dict):
        if "state" in raw:
            return _from_v1alpha1(raw)
        raw = {key: value for key, value in raw.items() if value is not None}
    status = _convert(raw)
    if isinstance(status, str):
        raise Invalid(list(_type_problems(raw)))
    return _checked(status)


def decode_status(raw: bytes) -> Status:
    """Like `load_status`, for the status alone as JSON: in one step, if this operator wrote it."""
    if b'"state"' not in raw:  # v1alpha1's
        with suppress(msgspec.DecodeError):
            return _checked(_DECODER.decode(raw))
    return load_status({"status": msgspec.json.decode(raw)})


def _checked(status: Status) -> Status:
    if problems := list(_value_problems(status)):
        raise Invalid(problems)
    return status


def dump_status(status: Status) -> dict[str, Any]:
    """The status as plain data. `cluster` is written in full, because a later release may have other defaults."""
    plain: dict[str, Any] = msgspec.to_builtins(status)
    if status.cluster is not None:
        kept = status.cluster
        plain["cluster"] = {"services": kept.services, "dialect": kept.dialect, **plain["cluster"]}
    return plain


def _from_v1alpha1(raw: Manifest) -> Status:
    """v1alpha1 had a state instead of conditions. It is read so that a finished job does not run again."""
    state = "Failed" if raw.get("phase") == "Failed" else raw["state"]
    if state not in ("Succeeded", "Failed"):
        return Status()
    message = str(raw.get("reason") or f"{state} under v1alpha1.")
    return Status(conditions=(Condition(state, "True", reason=f"TFJob{state}", message=message),))


def _convert(raw: Any) -> Status | str:
    """The status, or the message of msgspec's error."""
    try:
        return msgspec.convert(raw, Status)
    except msgspec.ValidationError as error:
        return str(error)


def _type_problems(raw: Any) -> Iterator[Problem]:
    """Every problem of the types: msgspec stops at the first error, so each part is converted by itself."""
    for part in _parts(raw):
        error = _convert(part)
        if isinstance(error, str):
            yield _problem(error, part)


def _parts(raw: Any) -> Iterator[Any]:
    """Statuses with a single field each, and with a single role in it, so that an error belongs to one role."""
    if not isinstance(raw, dict):
        yield raw
        return
    for name, value in raw.items():
        if name in ("tasks", "replicaStatuses") and isinstance(value, dict):
            yield from ({name: {role: kept}} for role, kept in value.items())
        else:
            yield {name: value}


def _problem(error: str, part: Any) -> Problem:
    """msgspec writes `[...]` for each key of a mapping; the first one is the role, and a part has one role."""
    match = _ERROR.fullmatch(error)
    if match is None:
        return Problem(("status",), error)
    message, location = match.groups()
    roles = [role for value in part.values() if isinstance(value, dict) for role in value]
    steps: list[str | int] = ["status"]
    for name, number in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", location):
        unnamed = roles.pop() if number == "..." and roles else "*"
        steps.append(name or (int(number) if number.isdigit() else unnamed))
    return Problem(tuple(steps), message)


def _value_problems(status: Status) -> Iterator[Problem]:
    """Problems of values that have the right type but that tfyard never writes: malformed texts and keys."""
    for role, memory in status.tasks.items():
        path = ("status", "tasks", role)
        kept = {"attempts": [*memory.attempts], "excused": [*memory.excused], "backoff": [*memory.backoff]}
        for field, index in ((field, index) for field, indexes in kept.items() for index in indexes):
            if not re.fullmatch(_INDEX, index):
                yield Problem((*path, field, index), "must be an index such as 7")
        if not _INDEXES.fullmatch(memory.finished):
            yield Problem((*path, "finished"), f"must be indexes such as 0-2,7, not {memory.finished!r}")
