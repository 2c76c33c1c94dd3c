"""Tasks that are evicted while the job runs, by `--kill` or `tfyard restart`, and how they end."""

import time
from collections.abc import Callable
from typing import NamedTuple

from tfyard.backends.local.node import ContainerEnded
from tfyard.backends.local.runner import PREEMPTED, RESTARTED, LocalRunner
from tfyard.local.settings import Rehearsal
from tfyard.model.exit_codes import CHECKPOINTED, SIGKILLED

KILL, RESTART = "--kill", "restart"
REASONS = {KILL: PREEMPTED, RESTART: RESTARTED}


class Signalled(NamedTuple):
    at: float
    grace: float
    by: str


class Rehearsals:
    def __init__(self, runner: LocalRunner, say: Callable[[str], None]) -> None:
        self._runner, self._say = runner, say
        self._waiting: dict[str, Signalled] = {}
        """Tasks that got the signal and have not ended yet."""

    def evict(self, rehearsal: Rehearsal, by: str = KILL) -> bool:
        """Evicts the task; False: it is not running."""
        task = rehearsal.task
        grace = self._runner.evict(task, REASONS[by], 0.0 if rehearsal.now else None)
        if grace is None:
            self._say(f"{by}: {task} is not running")
            return False
        self._say(f"{by}: SIGTERM to {task}, {grace:g} s grace" if grace else f"{by}: SIGKILL to {task}")
        self._waiting[task] = Signalled(time.monotonic(), grace, by)
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


def _end(code: int, seconds: float, grace: float) -> str:
    if code == SIGKILLED and seconds >= grace:
        return f"did not end within {grace:g} s of SIGTERM and was killed (SIGKILL)"
    saved = ", as TensorFlow does after it has saved a checkpoint" if code == CHECKPOINTED else ""
    return f"ended with code {code}, {seconds:.1f} s after SIGTERM{saved}"
