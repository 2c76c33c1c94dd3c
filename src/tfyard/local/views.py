"""A run on this machine, as `describe` and `events` show it."""

from datetime import UTC, datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local.run_directory import HOME, RunDirectory
from tfyard.errors import Invalid
from tfyard.local import runs
from tfyard.model import Event, Job
from tfyard.model.summary import RecordedEvent
from tfyard.node.log_times import SECOND, TimeIndex
from tfyard.overview.attempts import Attempt, failed, merged
from tfyard.overview.job_view import JobView, ToldEvent, outputs
from tfyard.overview.record import RunRecord, TaskRecord


def view(run: RunDirectory, record: RunRecord) -> JobView:
    job = job_of(run)
    seen = [_attempt(run, task, record) for task in record.tasks if task.outcome != "Not started"]
    summary = runs.summary(run, record)
    return JobView(
        summary=summary,
        title=f"run of {record.job} on this machine",
        job=job,
        attempts=tuple(merged(remembered(run), seen, [task.name for task in record.tasks])),
        failed=failed(seen, summary.status),
        events=tuple(events(run)),
        outputs=(
            *(outputs(job) if job else ()),
            f"volumes: {HOME / 'volumes'}",
            f"logs: {run.path / 'logs'}",
        ),
    )


def job_of(run: RunDirectory) -> Job | None:
    """None: it ended before it was written, or it is of another version of tfyard."""
    path = run.path / "job.yaml"
    try:
        return formats.load(formats.read(path.read_text())[0])
    except (FileNotFoundError, Invalid, IndexError):
        return None


def remembered(run: RunDirectory) -> list[Attempt]:
    """How earlier attempts failed."""
    try:
        found = msgspec.json.decode((run.path / "status.json").read_bytes(), type=_Endings).endings
    except (FileNotFoundError, msgspec.DecodeError):
        return []
    return [replace(each, attempt=each.attempt + each.restart, restart=0) for each in found]


def events(run: RunDirectory) -> list[ToldEvent]:
    decisions = [msgspec.convert(row, _Decision) for row in run.rows("decisions.jsonl")]
    return [_told(event, decision.at) for decision in decisions for event in decision.events]


class _Endings(Struct, frozen=True):
    endings: list[Attempt] = []


class _Decision(Struct, frozen=True):
    at: datetime
    events: tuple[Event, ...] = ()


def _told(event: Event, at: datetime) -> ToldEvent:
    recorded = RecordedEvent(type=event.type, reason=event.reason, message=event.message, at=at)
    return ToldEvent(event=recorded)


def _attempt(run: RunDirectory, task: TaskRecord, record: RunRecord) -> Attempt:
    """The last start. Where its times were not kept, those of the run are taken if it is the only one."""
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


def _time(written: int) -> datetime | None:
    return datetime.fromtimestamp(written / SECOND, UTC) if written else None
