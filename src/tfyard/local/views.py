"""A run on this machine, as `describe`, `events` and `top` show it."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local.run_directory import HOME, RunDirectory
from tfyard.errors import Invalid
from tfyard.local import runs
from tfyard.local.tasks import is_below
from tfyard.model import Event, Job, Status
from tfyard.model.run_record import RunRecord, TaskRecord
from tfyard.model.summary import RecordedEvent
from tfyard.model.sweep import values_text
from tfyard.node.log_times import SECOND, TimeIndex
from tfyard.node.orphans import owner
from tfyard.node.usage import ResourceUse, measure
from tfyard.overview import metrics
from tfyard.overview.attempts import Attempt, failed, merged, remembered
from tfyard.overview.job_view import OF_RUNS, JobView, ToldEvent, outputs
from tfyard.overview.progress import total_steps
from tfyard.overview.top import TaskUse
from tfyard.overview.wording import on_this_machine


def view(run: RunDirectory, record: RunRecord) -> JobView:
    job, seen = job_of(run), _last_starts(run, record)
    summary = runs.summary(run, record)
    return JobView(
        summary=summary,
        title=_title(record),
        job=job,
        attempts=tuple(attempts_of(run, record)),
        failed=failed(seen, summary.status),
        events=tuple(events(run)),
        outputs=(
            *(outputs(job) if job else ()),
            f"volumes: {HOME / 'volumes'}",
            f"logs: {run.path / 'logs'}",
        ),
    )


def _title(record: RunRecord) -> str:
    trial = record.trial
    if trial is None:
        return f"run of {record.job} on this machine"
    return f"trial {trial.number} of {trial.sweep} on this machine: {values_text(trial.values)}"


def attempts_of(run: RunDirectory, record: RunRecord) -> list[Attempt]:
    """All starts of all tasks, as far as they are known."""
    names = [task.name for task in record.tasks]
    return merged(_earlier(run.status()), _last_starts(run, record), names)


def _last_starts(run: RunDirectory, record: RunRecord) -> list[Attempt]:
    return [_attempt(run, task, record) for task in record.tasks if task.outcome != "Not started"]


def job_of(run: RunDirectory) -> Job | None:
    """Job of the run; None: the run ended before it was written, or another version of tfyard wrote it."""
    path = run.path / "job.yaml"
    try:
        return formats.load(formats.read(path.read_text())[0])
    except (FileNotFoundError, Invalid, IndexError):
        return None


def events(run: RunDirectory) -> list[ToldEvent]:
    decisions = [msgspec.convert(row, _LastDecision) for row in run.rows("decisions.jsonl")]
    about = f"{OF_RUNS}{run.path.name}"
    return [_told_event(event, decision.at, about) for decision in decisions for event in decision.events]


class _LastDecision(Struct, frozen=True):
    at: datetime
    events: tuple[Event, ...] = ()


def _told_event(event: Event, at: datetime, about: str) -> ToldEvent:
    message = on_this_machine(event.message)
    recorded = RecordedEvent(type=event.type, reason=event.reason, message=message, at=at)
    return ToldEvent(event=recorded, about=about)


def _earlier(status: Status) -> list[Attempt]:
    """Earlier attempts: each start of a program counts as one here, in a new pod or not."""
    known = remembered(status)
    return [replace(each, attempt=each.attempt + each.restart, restart=0) for each in known]


def _attempt(run: RunDirectory, task: TaskRecord, record: RunRecord) -> Attempt:
    """Last start of the task. Without times of its own, it gets those of the run if it is the only start."""
    if task.preparing:
        at = began(run, task.name, task.preparing)
        return Attempt(
            task=task.name,
            attempt=task.starts,
            state=task.outcome,
            scheduled=at,
            started=at,
            container=task.preparing,
        )
    times = TimeIndex(run.path / "logs" / f"{task.name}.{task.starts}.log").load()
    is_only = task.starts == 1
    return Attempt(
        task=task.name,
        attempt=task.starts,
        state=task.outcome,
        started=_time(times.began) or (record.started if is_only else None),
        finished=_time(times.ended) or (record.ended if is_only else None),
        exit_code=task.exit_code,
    )


def began(run: RunDirectory, task: str, container: str) -> datetime | None:
    """When a container of a task was started last."""
    log = last_log(run, task, container)
    return _time(TimeIndex(log).load().began) if log else None


def last_log(run: RunDirectory, task: str, container: str = "") -> Path | None:
    """Log of the last start of the task's program, or of one of its other containers."""
    name = re.escape(f"{task}.{container}" if container else task)
    paths = [path for path in run.logs(task) if re.fullmatch(rf"{name}\.\d+\.log", path.name)]
    return paths[-1] if paths else None


def _time(written: int) -> datetime | None:
    return datetime.fromtimestamp(written / SECOND, UTC) if written else None


# --- resources that tasks use now, found by the mark that each of their processes has

Sample = tuple[float, dict[str, ResourceUse]]
"""Time of a measurement, and what each task used."""
FIRST_LOOK = 0.5
"""Seconds between the first two measurements: CPU in use is a difference."""


class RunUsage:
    """Resources that one run uses, measured at each call of `tasks`."""

    problem = ""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._before: Sample | None = None
        job = job_of(run)
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
        """Resources of one task; the memory of one that has ended is its peak."""
        first, last, seconds = before[1].get(task.name), now[1].get(task.name), now[0] - before[0]
        return TaskUse(
            task=task.name,
            state=task.outcome,
            cpu=max(0.0, last.cpu - first.cpu) / seconds if first and last and seconds > 0 else None,
            memory=last.memory if last else task.peak or None,
            progress=metrics.progress((each for each in points if each.task == task.name), self._total),
        )


def _measured(record: RunRecord) -> dict[str, ResourceUse]:
    """Task -> resources that its processes use."""
    if record.ended:
        return {}
    uses = {}
    for session, used in measure().items():
        pod = (owner(session) or "").partition("/")[0]
        if pod.startswith(f"{record.job}-") and is_below(session, record.pid):
            uses[pod.removeprefix(f"{record.job}-")] = used
    return uses
