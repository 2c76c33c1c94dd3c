"""What is remembered of a run: how each task ended, how the training went, where its outputs are."""

import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunRecord, TaskRecord
from tfyard.local.shortfalls import stand_ins
from tfyard.model import Job, Status, Task, tensorflow_container
from tfyard.model.run_events import Ended, Happening, Started
from tfyard.planner import indexes

DEADLINE_CODE, INTERRUPT_CODE = 124, 130
_STEPS = re.compile(r"--?(?:max[_-]|train[_-]|num[_-])?steps[= ](\d+)")


class Recorder:
    """Sees every event of a run, and keeps how each task started and ended."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._starts: dict[str, int] = {}
        self._ends: dict[str, Ended] = {}

    def note(self, happening: Happening) -> None:
        match happening:
            case Started(task, start, _):
                self._starts[task] = start
                self._ends.pop(task, None)
            case Ended(task):
                self._ends[task] = happening

    def record(
        self, name: str, times: tuple[datetime, datetime | None], status: Status, interrupts: int
    ) -> RunRecord:
        """`times`: when the run started, and when it ended."""
        failure, (started, ended) = status.failure, times
        phase = "Interrupted" if interrupts and not status.is_finished else status.phase or "Running"
        return RunRecord(
            name=name,
            job=self.job.name,
            started=started,
            ended=ended,
            phase=phase,
            exit_code=None if ended is None else _exit_code(status, interrupts),
            message=failure.message if failure else "",
            tasks=tuple(self._task(task, status) for task in self.job.tasks()),
            expires=run_directory.expiry(self.job, ended) if ended is not None else None,
            pid=os.getpid() if ended is None else 0,
        )

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


def outputs(job: Job, given: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """(volume, directory) of the volumes that are kept after the run."""
    yield from given.items()
    for name, directory in stand_ins(job, set(given)):
        yield name, run_directory.HOME / "volumes" / directory


def total_steps(job: Job) -> int | None:
    """How many steps the program was told to do, if its command line says so."""
    for role in job.roles:
        container = tensorflow_container(role.template)
        line = " ".join(str(p) for p in [*(container.get("command") or []), *(container.get("args") or [])])
        if found := _STEPS.search(line):
            return int(found[1])
    return None


def _exit_code(status: Status, interrupts: int) -> int:
    if status.has("Succeeded"):
        return 0
    if status.failure is None:
        return INTERRUPT_CODE if interrupts else 1
    if status.failure.cause == "DeadlineExceeded":
        return DEADLINE_CODE
    return status.failure.exit_code or 1
