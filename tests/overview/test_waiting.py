from datetime import UTC, datetime

import pytest

from tfyard.model import Condition, Failure, Status
from tfyard.model.summary import JobSummary
from tfyard.overview.waiting import WaitResult, failure_line, verdict

NOW = datetime(2026, 11, 16, tzinfo=UTC)
RUNNING = Status(phase="Running", conditions=(Condition("Running", "True"),))
DONE = Status(phase="Succeeded", conditions=(Condition("Succeeded", "True"),))
LOST = Status(
    phase="Failed",
    conditions=(Condition("Failed", "True"),),
    failure=Failure(cause="TaskFailed", exit_code=7, message="worker-0 failed\nTraceback"),
)
LATE = Status(conditions=(Condition("Failed", "True"),), failure=Failure(cause="DeadlineExceeded"))
BLOCKED = Status(phase="Blocked", conditions=(Condition("Blocked", "True", message="exceeded quota: gpus"),))


@pytest.mark.parametrize(
    ("status", "goal", "code"),
    [
        (Status(), "running", None),
        (RUNNING, "succeeded", None),
        (RUNNING, "finished", None),
        (RUNNING, "running", 0),
        (DONE, "succeeded", 0),
        (DONE, "running", 0),
        (LOST, "succeeded", 7),
        (LOST, "running", 7),
        (LOST, "finished", 0),
        (LATE, "succeeded", 124),
        (Status(conditions=(Condition("Failed", "True"),)), "succeeded", 1),
        (Status(phase="Killed"), "succeeded", 1),
        (BLOCKED, "succeeded", None),
    ],
)
def test_a_wait_ends_with_the_jobs_own_code(status: Status, goal: str, code: int | None) -> None:
    result = verdict(JobSummary(name="a", job="a", created=NOW, status=status), goal)
    assert (result and result.code) == code


def test_a_refusal_ends_a_wait_that_is_told_to_give_up() -> None:
    job = JobSummary(name="a", job="a", created=NOW, status=BLOCKED)
    assert verdict(job, "succeeded", ["waiting", "blocked"]) == WaitResult(
        1, "a: Blocked: exceeded quota: gpus"
    )


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", ""),
        (": Killed", ": Killed"),
        (
            ': start\nTraceback (most recent call last):\n  File "/code/a.py", line 3, in f\n    g()\nKeyError: 1',
            ": KeyError: 1",
        ),
        (": start\nhalf of it\n", ": half of it"),
    ],
)
def test_of_the_log_in_a_failure_only_the_error_is_told(log: str, expected: str) -> None:
    message = "TFJob ml/a has failed because 1 Worker replica(s) failed: worker-0 exited with code 1 (Why)"
    failure = Failure(cause="TaskFailed", task="worker-0", exit_code=1, message=message + log)
    assert failure_line(failure) == message + expected


def test_only_the_first_line_of_the_failure_is_told() -> None:
    result = verdict(JobSummary(name="a", job="a", created=NOW, status=LOST), "succeeded")
    assert result == WaitResult(7, "a: Failed: worker-0 failed")
