"""A job as a row of a list, and its recorded events, in a cluster or on this machine alike."""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from .status import Status


class JobSummary(Struct, frozen=True, kw_only=True):
    name: str
    """Name of the TFJob, or of the run on this machine."""
    namespace: str = ""
    """Empty for a run on this machine."""
    job: str
    """Name in the job's file; the name of a run on this machine is a different one."""
    created: datetime
    status: Status = Status()
    exit_code: int | None = None
    """Exit code of a run on this machine that has ended; a TFJob has it in its status."""

    def deleted(self) -> "JobSummary":
        return replace(self, status=replace(self.status, phase="Deleted"))


class RecordedEvent(Struct, frozen=True, kw_only=True):
    """A stored event; `at` is the last time at which it happened."""

    type: Literal["Normal", "Warning"] = "Normal"
    reason: str = ""
    message: str = ""
    at: datetime
    count: int = 1
