"""The record of a run, during it and afterwards: how each task and the whole ended."""

from datetime import datetime, timedelta

from tfyard.errors import Interrupted
from tfyard.model import EVALUATOR, Ending, Job, Status, Task, preparations
from tfyard.model.run_events import Ended, RunEvent, Started
from tfyard.model.run_record import PREPARING, RunRecord, TaskRecord
from tfyard.overview.steps import Steps
from tfyard.overview.wording import on_this_machine
from tfyard.planner import indexes

INTERRUPT_CODE = Interrupted.exit_code


class Recorder:
    """Records how each task started and ended, from all events of a run."""

    def __init__(self, name: str, job: Job, started: datetime, pid: int, resumes: str = "") -> None:
        self.name, self.job, self.started, self.pid, self.resumes = name, job, started, pid, resumes
        self.stopped_as = "Interrupted"
        """Phase of the run if it is stopped before its end."""
        self._preparations = {role.name: preparations(role.template) for role in job.roles}
        self._starts: dict[str, int] = {}
        """Task, or init container of a task -> the number of its last start."""
        self._ends: dict[str, Ended] = {}
        self._steps = Steps()
        self._cpu: dict[str, float] = {}

    def note(self, event: RunEvent) -> None:
        self._steps.note(event)
        match event:
            case Started(task, start, _):
                self._starts[task] = start
                self._ends.pop(task, None)
            case Ended(task):
                self._ends[task] = event
                self._cpu[task] = self._cpu.get(task, 0.0) + event.cpu

    def record(self, status: Status, interrupts: int = 0, ended: datetime | None = None) -> RunRecord:
        is_interrupted = interrupts > 0 and not status.is_finished
        return RunRecord(
            name=self.name,
            job=self.job.name,
            started=self.started,
            ended=ended,
            phase=self.stopped_as if is_interrupted else status.phase or "Running",
            exit_code=None if ended is None else exit_code(status, interrupts),
            message=on_this_machine(status.failure.message) if status.failure else "",
            tasks=tuple(self._task(task, status) for task in self.job.tasks()),
            expires=None if ended is None else expiry(self.job, ended),
            pid=self.pid if ended is None else 0,
            resumes=self.resumes,
        )

    @property
    def has_preparations(self) -> bool:
        """Whether tasks wait for init containers, so that a task may be prepared for long without a new phase."""
        return any(self._preparations.values())

    def starts(self, task: str) -> int:
        """Number of starts of a task so far."""
        return self._starts.get(task, 0)

    def _task(self, task: Task, status: Status) -> TaskRecord:
        end = self._ends.get(task.name)
        before = _failed_before_its_start(task, status) if task.name not in self._starts else None
        preparing = self._preparing(task)
        return TaskRecord(
            name=task.name,
            outcome="Failed" if before else PREPARING if preparing else self._outcome(task, status, end),
            exit_code=end.code if end else before.exit_code if before else None,
            starts=self._starts.get(task.name, 0) + bool(preparing) or 1,
            cpu=self._cpu.get(task.name, 0.0),
            peak=end.peak if end else 0,
            preparing=preparing,
            steps=()
            if task.role == EVALUATOR
            else self._steps.of(task.name),  # it trains none that it could lose
        )

    def _preparing(self, task: Task) -> str:
        """The init container of a task that runs now."""
        begun = self._starts.keys() - self._ends.keys()
        return next((each for each in self._preparations[task.role] if f"{task.name}.{each}" in begun), "")

    def _outcome(self, task: Task, status: Status, end: Ended | None) -> str:
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


def _failed_before_its_start(task: Task, status: Status) -> Ending | None:
    """The failure of an init container, because of which the program of a task never started."""
    return next(
        (each for each in reversed(status.endings) if each.task == task.name and each.container), None
    )


def exit_code(status: Status, interrupts: int) -> int:
    """Exit code of `tfyard run`, which may end before its job has finished."""
    before_the_end = INTERRUPT_CODE if interrupts else 1
    return before_the_end if status.exit_code is None else status.exit_code


def expiry(job: Job, ended: datetime) -> datetime | None:
    """When the run's directory may be removed, by keepFor or ttlSecondsAfterFinished."""
    return None if job.run_policy.ttl is None else ended + timedelta(seconds=job.run_policy.ttl)
