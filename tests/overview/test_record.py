"""How each task and the whole ended, from events and a status."""

from datetime import UTC, datetime, timedelta

import pytest

from tfyard.model import EVALUATOR, Condition, Failure, Job, Role, RunPolicy, Status
from tfyard.model.run_events import Ended, Metric, Started
from tfyard.model.status import RoleMemory
from tfyard.overview.record import Recorder, exit_code

START = datetime(2026, 1, 1, tzinfo=UTC)
SUCCEEDED = Status(phase="Succeeded", conditions=(Condition("Succeeded", "True"),))


def failed(**fields: object) -> Status:
    failure = Failure(**{"cause": "TaskFailed", **fields})
    return Status(phase="Failed", conditions=(Condition("Failed", "True"),), failure=failure)


@pytest.mark.parametrize(
    ("status", "interrupts", "code"),
    [
        pytest.param(SUCCEEDED, 0, 0, id="success"),
        pytest.param(SUCCEEDED, 1, 0, id="success before Ctrl-C"),
        pytest.param(failed(exit_code=3), 0, 3, id="the task's own"),
        pytest.param(failed(), 0, 1, id="a failure without a code"),
        pytest.param(failed(cause="DeadlineExceeded", exit_code=9), 0, 124, id="deadline"),
        pytest.param(Status(), 1, 130, id="Ctrl-C"),
        pytest.param(Status(), 0, 1, id="no end at all"),
    ],
)
def test_exit_codes(status: Status, interrupts: int, code: int) -> None:
    assert exit_code(status, interrupts) == code


def recorder(workers: int, ttl: int | None = None) -> Recorder:
    job = Job(name="j", roles=(Role(name="Worker", replicas=workers),), run_policy=RunPolicy(ttl=ttl))
    return Recorder("j-1", job, START, pid=7)


def test_a_task_is_told_by_how_it_ended_itself() -> None:
    made = recorder(6)
    for index in range(1, 6):
        made.note(Started(f"worker-{index}", 1, "log"))
    made.note(Ended("worker-2", 0, "Completed"))
    made.note(Ended("worker-3", 1, "Error", cpu=2.0, peak=5))
    made.note(Ended("worker-4", 143, "Error", stopped="the job has ended"))
    made.note(Ended("worker-5", 143, "Error", stopped="the job has ended"))
    tasks = made.record(Status(tasks={"Worker": RoleMemory(finished="5")})).tasks
    assert [task.outcome for task in tasks] == [
        "Not started",
        "Running",
        "Succeeded",
        "Failed",
        "Stopped",
        "Succeeded",
    ]
    assert (tasks[3].exit_code, tasks[3].cpu, tasks[3].peak) == (1, 2.0, 5)


def test_a_task_that_starts_again_runs() -> None:
    made = recorder(1)
    for event in (Started("worker-0", 1, ""), Ended("worker-0", 1, "Error"), Started("worker-0", 2, "")):
        made.note(event)
    (task,) = made.record(Status()).tasks
    assert (task.outcome, task.exit_code, task.starts) == ("Running", None, 2)


def test_an_evaluator_that_starts_again_has_lost_no_steps() -> None:
    """It reports the steps of the checkpoints that it judges, and trains none."""
    job = Job(name="j", roles=(Role(name="Worker", replicas=1), Role(name=EVALUATOR, replicas=1)))
    made = Recorder("j-1", job, START, pid=7)
    for task in ("worker-0", "evaluator-0"):
        for start in (1, 2):
            made.note(Started(task, start, ""))
            made.note(Metric(task=task, step=50 * start, values={"loss": 0.3}))
    worker, evaluator = made.record(Status()).tasks
    assert [len(worker.steps), len(evaluator.steps)] == [2, 0]


def test_a_run_that_goes_on_has_a_process_and_no_end() -> None:
    record = recorder(1).record(Status(phase="Restarting"))
    assert (record.phase, record.pid, record.ended, record.exit_code) == ("Restarting", 7, None, None)


def test_a_run_that_has_ended_has_an_expiry_and_no_process() -> None:
    end = START + timedelta(seconds=5)
    record = recorder(1, ttl=60).record(failed(exit_code=3, message="why"), ended=end)
    assert (record.phase, record.pid, record.exit_code, record.message) == ("Failed", 0, 3, "why")
    assert record.expires == end + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("status", "phase"), [(Status(phase="Running"), "Interrupted"), (SUCCEEDED, "Succeeded")]
)
def test_only_what_had_not_ended_was_interrupted(status: Status, phase: str) -> None:
    assert recorder(1).record(status, 1, START).phase == phase
