"""Rows, headlines and details of a run."""

from datetime import UTC, datetime, timedelta

from tfyard.model.run_events import Metric
from tfyard.model.run_record import RunRecord, TaskRecord
from tfyard.overview.progress import Progress
from tfyard.overview.summary import (
    RUN_COLUMNS,
    TASK_COLUMNS,
    details,
    headline,
    run_row,
    task_row,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
RUN = RunRecord(name="j-1", job="j", started=START, tasks=(TaskRecord(name="worker-0", outcome="Running"),))
ENDED = RunRecord(
    name="j-1", job="j", started=START, ended=START + timedelta(minutes=2), phase="Failed", exit_code=3
)


def test_a_headline_says_how_long_it_took() -> None:
    assert headline(ENDED) == "j: Failed after 2m00s"
    assert headline(RUN) == "j: Running after ?"


def test_rows_fit_their_columns() -> None:
    task = TaskRecord(name="ps-0", outcome="Stopped", exit_code=143, starts=2, cpu=1.25, peak=2_000_000)
    assert task_row(task) == ("ps-0", "Stopped", "143", "1", "1.2s", "2 MB")
    assert task_row(RUN.tasks[0]) == ("worker-0", "Running", "", "0", "", "")
    assert len(task_row(task)) == len(TASK_COLUMNS)
    assert run_row(RUN, START + timedelta(seconds=7)) == ("j-1", "Running", "1", "7s", "")
    assert run_row(ENDED, START + timedelta(days=1)) == ("j-1", "Failed", "0", "2m00s", "3")
    assert len(run_row(RUN, START)) == len(RUN_COLUMNS)


def test_details_are_why_it_failed_and_the_last_metrics() -> None:
    progress = Progress()
    progress.note(Metric(task="worker-0", values={"loss": 0.123456}, step=1), 0.0)
    assert list(details(["a cause", "fix: this"], progress)) == [
        "",
        "a cause\nfix: this",
        "",
        "last: loss 0.1235",
    ]
    assert list(details([], Progress(), ["worker-0 failed"])) == ["", "worker-0 failed"]
    assert list(details([], Progress())) == []
