"""The summary of a run as text: its outcome, that of each task, why it failed, and the last metrics."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from tfyard.model.run_record import RunRecord, TaskRecord
from tfyard.overview.progress import Progress
from tfyard.overview.steps import rows
from tfyard.overview.wording import duration, size

TASK_COLUMNS = ("TASK", "OUTCOME", "EXIT CODE", "RESTARTS", "CPU", "MEMORY")
RUN_COLUMNS = ("RUN", "PHASE", "TASKS", "TOOK", "EXIT CODE")


def headline(record: RunRecord) -> str:
    took = duration((record.ended - record.started).total_seconds()) if record.ended else "?"
    return f"{record.job}: {record.phase} after {took}"


def task_row(task: TaskRecord) -> tuple[str, ...]:
    """Cells of TASK_COLUMNS."""
    used = (f"{task.cpu:.1f}s", size(task.peak)) if task.peak else ("", "")
    return (task.name, task.outcome, _code(task.exit_code), str(task.starts - 1), *used)


def start_rows(record: RunRecord) -> list[tuple[str, ...]]:
    """Where the starts of tasks began that started more than once: cells of START_COLUMNS."""
    return [row for task in record.tasks for row in rows(task.name, task.steps)]


def run_row(record: RunRecord, now: datetime) -> tuple[str, ...]:
    """Cells of RUN_COLUMNS."""
    took = duration(((record.ended or now) - record.started).total_seconds())
    return (record.name, record.phase, str(len(record.tasks)), took, _code(record.exit_code))


def details(why: Sequence[str], progress: Progress, disruptions: Sequence[str] = ()) -> Iterator[str]:
    """Lines on tasks that were taken away, why the run failed, if it did, and the last metrics; an empty line
    before each."""
    if disruptions:
        yield ""
        yield "\n".join(disruptions)
    if why:
        yield ""
        yield "\n".join(why)
    if progress.values:
        yield ""
        yield f"last: {progress.metrics()}"


def _code(code: int | None) -> str:
    return "" if code is None else str(code)
