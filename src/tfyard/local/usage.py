"""What the tasks of a run use now, from outside: by the mark that each of its processes has."""

import time

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import runs, views
from tfyard.local.tasks import is_below
from tfyard.node.orphans import owner
from tfyard.node.usage import ResourceUse, measure
from tfyard.overview import metrics
from tfyard.overview.progress import total_steps
from tfyard.overview.record import RunRecord, TaskRecord
from tfyard.overview.top import TaskUse

Sample = tuple[float, dict[str, ResourceUse]]
"""When, and what each task used."""
FIRST_LOOK = 0.5
"""Seconds between the first two measurements: CPU in use is a difference."""


class RunUsage:
    """Of one run; measures again at each `tasks`."""

    problem = ""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._before: Sample | None = None
        job = views.job_of(run)
        self._total = total_steps(job) if job else None

    def tasks(self) -> list[TaskUse]:
        record = self._run.load()
        if record is None:
            return []
        if self._before is None and not record.ended:
            self._before = time.monotonic(), _measured(record)
            time.sleep(FIRST_LOOK)
        before, now = self._before or (0.0, {}), (time.monotonic(), _measured(record))
        self._before = now
        points = runs.points(self._run)
        return [self._use(task, before, now, points) for task in record.tasks]

    def _use(self, task: TaskRecord, before: Sample, now: Sample, points: list[metrics.Point]) -> TaskUse:
        """Of a task that has ended, the memory is the most that it had."""
        first, last, seconds = before[1].get(task.name), now[1].get(task.name), now[0] - before[0]
        return TaskUse(
            task=task.name,
            state=task.outcome,
            cpu=max(0.0, last.cpu - first.cpu) / seconds if first and last and seconds > 0 else None,
            memory=last.memory if last else task.peak or None,
            progress=metrics.progress((each for each in points if each.task == task.name), self._total),
        )


def _measured(record: RunRecord) -> dict[str, ResourceUse]:
    """Task -> what its processes use."""
    if record.ended:
        return {}
    found = {}
    for session, used in measure().items():
        pod = (owner(session) or "").partition("/")[0]
        if pod.startswith(f"{record.job}-") and is_below(session, record.pid):
            found[pod.removeprefix(f"{record.job}-")] = used
    return found
