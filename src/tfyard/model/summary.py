"""A job as it is read, wherever it runs: as a row in a list, and by its events."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from .status import Status


class JobSummary(Struct, frozen=True, kw_only=True):
    name: str
    """Of the TFJob, or of the run on this machine."""
    namespace: str = ""
    """Empty for a run on this machine."""
    job: str
    """The name that the job was given; a run on this machine has a name of its own as well."""
    created: datetime
    status: Status = Status()


class RecordedEvent(Struct, frozen=True, kw_only=True):
    """An event as it was stored, with the last time at which it happened."""

    type: Literal["Normal", "Warning"] = "Normal"
    reason: str = ""
    message: str = ""
    at: datetime
    count: int = 1
