"""What is known of a run, while it goes on and afterwards: how each task and the whole ended."""

from datetime import datetime, timedelta

from msgspec import Struct

from tfyard.errors import Interrupted
from tfyard.model import Job, Status, Task
from tfyard.model.run_events import Ended, RunEvent, Started

DEADLINE_CODE, INTERRUPT_CODE = 124, Interrupted.exit_code
"""Exit codes, as of `timeout` and of a shell after Ctrl-C."""


class TaskRecord(Struct, frozen=True, kw_only=True):
    name: str
    outcome: str
    exit_code: int | None = None
    starts: int = 1
    cpu: float = 0.0
    """Seconds."""
    peak: int = 0
    """Bytes."""


class RunRecord(Struct, frozen=True, kw_only=True):
    name: str
    job: str
    started: datetime
    ended: datetime | None = None
    phase: str = "Running"
    exit_code: int | None = None
    message: str = ""
    tasks: tuple[TaskRecord, ...] = ()
    expires: datetime | None = None
    pid: int = 0
    """Of the tfyard that runs it; 0 once it has ended."""
    mounts: dict[str, str] = {}
    """Volume -> directory, of those that were given one (`--mount`)."""
    is_locked: bool = False
    """Whoever runs it holds the lock of its directory; not every file system has locks."""
    resumes: str = ""
    """The run that it goes on from, if it does."""


class Recorder:
    """Sees every event of a run, and keeps how each task started and ended."""

    def __init__(self, name: str, job: Job, started: datetime, pid: int, resumes: str = "") -> None:
        self.name, self.job, self.started, self.pid, self.resumes = name, job, started, pid, resumes
        self.stopped_as = "Interrupted"
        """The phase of a run that is stopped before its end."""
        self._starts: dict[str, int] = {}
        self._ends: dict[str, Ended] = {}

    def note(self, event: RunEvent) -> None:
        match event:
            case Started(task, start, _):
                self._starts[task] = start
                self._ends.pop(task, None)
            case Ended(task):
                self._ends[task] = event

    def record(self, status: Status, interrupts: int = 0, ended: datetime | None = None) -> RunRecord:
        is_interrupted = interrupts > 0 and not status.is_finished
        return RunRecord(
            name=self.name,
            job=self.job.name,
            started=self.started,
            ended=ended,
            phase=self.stopped_as if is_interrupted else status.phase or "Running",
            exit_code=None if ended is None else exit_code(status, interrupts),
            message=status.failure.message if status.failure else "",
            tasks=tuple(self._task(task, status) for task in self.job.tasks()),
            expires=None if ended is None else expiry(self.job, ended),
            pid=self.pid if ended is None else 0,
            resumes=self.resumes,
        )

    def starts(self, task: str) -> int:
        """How often it has started so far."""
        return self._starts.get(task, 0)

    def _task(self, task: Task, status: Status) -> TaskRecord:
        end = self._ends.get(task.name)
        return TaskRecord(
            name=task.name,
            outcome=self._outcome(task, status, end),
            exit_code=end.code if end else None,
            starts=self._starts.get(task.name, 0) or 1,
            cpu=end.cpu if end else 0.0,
            peak=end.peak if end else 0,
        )

    def _outcome(self, task: Task, status: Status, end: Ended | None) -> str:
        from tfyard.planner import indexes  # not for those who only read records: it brings the whole planner

        memory = status.tasks.get(task.role)
        if memory is not None and task.index in indexes.expand(memory.finished, task.index + 1):
            return "Succeeded"
        if task.name not in self._starts:
            return "Not started"
        if end is None:
            return "Running"
        if end.stopped:
            return "Stopped"
        return "Failed" if end.code else "Succeeded"


def exit_code(status: Status, interrupts: int) -> int:
    """What tfyard exits with."""
    if status.has("Succeeded"):
        return 0
    if status.failure is None:
        return INTERRUPT_CODE if interrupts else 1
    if status.failure.cause == "DeadlineExceeded":
        return DEADLINE_CODE
    return status.failure.exit_code or 1


def expiry(job: Job, ended: datetime) -> datetime | None:
    """When the run's directory may be removed: keepFor, ttlSecondsAfterFinished."""
    return None if job.run_policy.ttl is None else ended + timedelta(seconds=job.run_policy.ttl)
