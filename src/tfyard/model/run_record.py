"""The record of a run, as run.json has it: when it ran, and how each task and the whole ended."""

from typing import Literal

from msgspec import Struct

from .status import Time
from .sweep import TrialOf

PREPARING = "Preparing"
"""Outcome of a task whose init container runs."""


class StartSteps(Struct, frozen=True, kw_only=True):
    """What one start of a task trained."""

    start: int
    unit: Literal["step", "epoch"] = "step"
    began: int | None = None
    """Where the program said that it begins, or else its first report."""
    is_told: bool = False
    """Whether the program said where it begins."""
    reached: int | None = None
    """The furthest report."""
    lost: int | None = None
    """Steps, or epochs begun, that an earlier start reported and this one trained again: at most so many, if the
    program did not say where it begins; None: not known."""


class TaskRecord(Struct, frozen=True, kw_only=True):
    name: str
    outcome: str
    exit_code: int | None = None
    starts: int = 1
    cpu: float = 0.0
    """Seconds of CPU time, of all starts of the task."""
    peak: int = 0
    """Highest memory use in bytes."""
    preparing: str = ""
    """The init container that runs, because of which the program has not started; empty: none."""
    steps: tuple[StartSteps, ...] = ()
    """Where each of its starts began; only of a task that started more than once."""


class RunRecord(Struct, frozen=True, kw_only=True):
    name: str
    job: str
    started: Time
    ended: Time | None = None
    phase: str = "Running"
    exit_code: int | None = None
    message: str = ""
    tasks: tuple[TaskRecord, ...] = ()
    expires: Time | None = None
    pid: int = 0
    """Process id of the tfyard that runs it; 0 once it has ended."""
    mounts: dict[str, str] = {}
    """Volume -> directory, from `--mount`."""
    is_locked: bool = False
    """Whether the tfyard that runs it holds the lock of its directory; not every file system has locks."""
    resumes: str = ""
    """Name of the run that it continues; empty: none."""
    trial: TrialOf | None = None
    """The trial of a sweep that it is; None: it is a run by itself."""

    @property
    def has_failure(self) -> bool:
        """Whether the job has failed, or has succeeded although a task failed."""
        succeeded_without = self.phase == "Succeeded" and any(t.outcome == "Failed" for t in self.tasks)
        return self.phase == "Failed" or succeeded_without
