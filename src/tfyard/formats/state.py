"""The status of a TFJob object <-> Status."""

from typing import Any

import msgspec

from tfyard.errors import Invalid
from tfyard.model import Manifest, Problem, Status


def load_status(document: Manifest) -> Status:
    """What is remembered of a job. Fields that other operators wrote and we do not know are passed over."""
    try:
        return msgspec.convert(document.get("status") or {}, Status)
    except msgspec.ValidationError as error:
        raise Invalid([Problem(("status",), str(error), "remove the status: it is made anew")]) from error


def dump_status(status: Status) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(status)
    return plain
