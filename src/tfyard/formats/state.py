"""The status of a TFJob object <-> Status."""

from typing import Any

import msgspec

from tfyard.errors import Invalid
from tfyard.model import Condition, Manifest, Problem, Status


def load_status(document: Manifest) -> Status:
    """What is remembered of a job. Fields that other operators wrote and we do not know are passed over."""
    raw = document.get("status") or {}
    if isinstance(raw, dict):
        if "state" in raw:
            return _from_v1alpha1(raw)
        raw = {key: value for key, value in raw.items() if value is not None}
    try:
        return msgspec.convert(raw, Status)
    except msgspec.ValidationError as error:
        raise Invalid([Problem(("status",), str(error), "remove the status: it is made anew")]) from error


def dump_status(status: Status) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(status)
    return plain


def _from_v1alpha1(raw: Manifest) -> Status:
    """It had a state and no conditions. What was finished then must not be run again now."""
    state = "Failed" if raw.get("phase") == "Failed" else raw["state"]
    if state not in ("Succeeded", "Failed"):
        return Status()
    message = str(raw.get("reason") or f"{state} under v1alpha1.")
    return Status(conditions=(Condition(state, "True", reason=f"TFJob{state}", message=message),))
