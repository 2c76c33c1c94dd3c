"""Tasks that are evicted while the job runs, by `--kill` or `tfyard restart`: how they end, and the
reason of a failure after it."""

import time
from collections.abc import Callable
from typing import NamedTuple

from tfyard.backends.local.node import ContainerEnded
from tfyard.backends.local.runner import PREEMPTED, RESTARTED, LocalRunner
from tfyard.local.settings import Rehearsal
from tfyard.model import Failure, Job
from tfyard.model.exit_codes import SIGKILLED, may_restart

KILL, RESTART = "--kill", "restart"
REASONS = {KILL: PREEMPTED, RESTART: RESTARTED}
NEEDS_RESTART = (
    "where all tasks fail with one, as in MultiWorkerMirroredStrategy, the job needs `restart: on-failure`"
)


class Signalled(NamedTuple):
    at: float
    grace: float
    by: str


class Rehearsals:
    def __init__(self, runner: LocalRunner, say: Callable[[str], None]) -> None:
        self._runner, self._say = runner, say
        self._waiting: dict[str, Signalled] = {}
        """Tasks that got the signal and have not ended yet."""
        self._evicted: dict[str, str] = {}
        """Task -> what evicted it: --kill or restart."""

    def evict(self, rehearsal: Rehearsal, by: str = KILL) -> bool:
        """Evicts the task; False: it is not running."""
        task = rehearsal.task
        grace = self._runner.evict(task, REASONS[by], 0.0 if rehearsal.now else None)
        if grace is None:
            self._say(f"{by}: {task} is not running")
            return False
        self._say(f"{by}: SIGTERM to {task}, {grace:g} s grace" if grace else f"{by}: SIGKILL to {task}")
        self._waiting[task] = Signalled(time.monotonic(), grace, by)
        self._evicted[task] = by
        return True

    def ended(self, event: ContainerEnded, *, is_job_finished: bool) -> None:
        """Reports how a task ended that got the signal."""
        task = event.started.log_name
        if event.reason not in REASONS.values() or task not in self._waiting:
            return
        signalled = self._waiting.pop(task)
        if signalled.grace:
            text = _end(event.exit.code, time.monotonic() - signalled.at, signalled.grace)
            late = "; the job ended before it" if is_job_finished else ""
            self._say(f"{signalled.by}: {task} {text}{late}")

    def failed(self, job: Job, failure: Failure | None) -> None:
        """Explains a failure after an eviction: if a task is replaced, its peers fail and must restart, too."""
        if not self._evicted or failure is None or failure.cause != "TaskFailed":
            return
        role = job.role(next((task.role for task in job.tasks() if task.name == failure.task), ""))
        if role is not None and not may_restart(role.restart, failure.exit_code):
            text = f"{', '.join(self._evicted)} was evicted, and {failure.task} failed after it"
            self._say(f"{next(iter(self._evicted.values()))}: {text}: {NEEDS_RESTART}")


def _end(code: int, seconds: float, grace: float) -> str:
    if code == SIGKILLED and seconds >= grace:
        return f"did not end within {grace:g} s of SIGTERM and was killed (SIGKILL)"
    return f"ended with code {code}, {seconds:.1f} s after SIGTERM"
