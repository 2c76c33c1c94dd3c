"""The process that reports a job, as its real self, against servers that are well, slow, gone, or refuse."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import ANY

import pytest

from tests.ports import reserved_port
from tests.tracking.server import SmallMLflow, serving
from tfyard.tracking.orders import TrackingEnd, TrackingOrder
from tfyard.tracking.tracker import END, Tracker

pytestmark = pytest.mark.processes
PATIENCE = 60.0
Start = Callable[..., Tracker]


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    path.touch()
    return path


@pytest.fixture
def start(feed: Path) -> Iterator[Start]:
    started: list[Tracker] = []

    def begin(uri: str, **fields: object) -> Tracker:
        order = TrackingOrder(uri=uri, job="mnist", name="mnist-1", deciding="worker-0", started=1.0)
        with feed.open("rb") as file:
            started.append(Tracker(order, feed=file.fileno(), **fields))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def write(feed: Path, *losses: float) -> None:
    with feed.open("ab") as file:
        for step, loss in enumerate(losses):
            row = {"loss": loss, "at": 2.0 + step, "task": "worker-0", "step": step}
            file.write(json.dumps(row).encode() + b"\n")


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_metrics_arrive_while_the_job_runs_and_the_end_with_what_came_last(
    feed: Path, start: Start, mlflow: SmallMLflow
) -> None:
    tracker = start(mlflow.uri, parameters={"lr": "0.1"}, tags={"tfyard.job": "mnist"})
    assert tracker.wait_for_run(PATIENCE) == "run1"
    assert tracker.page == f"{mlflow.uri}/#/experiments/1/runs/run1"
    write(feed, 0.5, 0.25)
    until(lambda: mlflow.metrics().get("loss") == [(0, 0.5), (1, 0.25)])
    with feed.open("ab") as file:
        file.write(b'{"loss": 0.1, "at": 9')  # a line that is still being written
    write(feed)
    assert tracker.end(TrackingEnd("Failed", {"tfyard.exit_code": "3"}, at=20.0), PATIENCE)
    assert mlflow.run == {
        "status": "FAILED",
        "end_time": 20000,
        "name": "mnist-1",
        "tags": {"tfyard.job": "mnist", "tfyard.exit_code": "3", "tfyard.id": ANY},
        "params": {"lr": "0.1"},
    }
    assert mlflow.metrics() == {"loss": [(0, 0.5), (1, 0.25)]}
    assert tracker.problem() == ""


def test_many_metrics_are_few_requests(feed: Path, start: Start, mlflow: SmallMLflow) -> None:
    write(feed, *range(2500))
    tracker = start(mlflow.uri)
    tracker.wait_for_run(PATIENCE)
    assert tracker.end(TrackingEnd("Succeeded"), PATIENCE)
    assert len(mlflow.metrics()["loss"]) == 2500
    assert len(mlflow.calls("runs/log-batch")) <= 4


def test_a_server_that_is_gone_is_told_once_and_gets_everything_when_it_is_back(
    feed: Path, start: Start
) -> None:
    with reserved_port() as port:
        tracker = start(f"http://127.0.0.1:{port}")
        assert tracker.wait_for_run(PATIENCE) == ""
        told = tracker.problem()
        assert told.startswith(
            f"MLflow at http://127.0.0.1:{port}: Connection refused; what is missing is sent"
        )
        write(feed, 0.5)
        with serving(port) as mlflow:
            until(lambda: mlflow.metrics() == {"loss": [(0, 0.5)]})
            until(lambda: tracker.problem() == "" and tracker.wait_for_run(0.0))
            assert tracker.end(TrackingEnd("Succeeded"), PATIENCE)
            assert mlflow.run["status"] == "FINISHED"


def test_a_run_whose_answer_is_lost_is_gone_on_with(feed: Path, start: Start, mlflow: SmallMLflow) -> None:
    mlflow.lost = ["runs/create"]
    tracker = start(mlflow.uri, parameters={"lr": "0.1"})
    until(lambda: [tracker.problem(), tracker.run][1])
    write(feed, 0.5)
    assert tracker.end(TrackingEnd("Succeeded"), PATIENCE)
    assert (mlflow.run["status"], mlflow.run["params"]) == ("FINISHED", {"lr": "0.1"})
    assert mlflow.metrics() == {"loss": [(0, 0.5)]}


def test_a_run_that_a_slow_server_makes_after_it_was_asked_again_does_not_stay(
    start: Start, mlflow: SmallMLflow
) -> None:
    """It would be RUNNING for ever."""
    mlflow.lost = ["runs/create"]
    tracker = start(mlflow.uri)
    until(lambda: mlflow.runs)
    late = mlflow.runs.pop("run1")
    until(lambda: [tracker.problem(), tracker.run][1])
    mlflow.runs["late"] = late
    assert tracker.end(TrackingEnd("Succeeded"), PATIENCE)
    assert mlflow.run["status"] == "FINISHED"


def test_a_server_that_never_answers_holds_nobody_up(start: Start, mlflow: SmallMLflow) -> None:
    mlflow.delay = 600
    tracker = start(mlflow.uri)
    before = time.monotonic()
    assert tracker.wait_for_run(0.1) == ""
    assert not tracker.end(TrackingEnd("Succeeded"), 0.2)
    assert tracker._process.returncode is not None, "nothing is left"
    assert time.monotonic() - before < END + PATIENCE


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_refuses_is_asked_once(status: int, start: Start, mlflow: SmallMLflow) -> None:
    mlflow.status = status
    tracker = start(mlflow.uri)
    assert tracker.wait_for_run(PATIENCE) == ""
    assert str(status) in tracker.problem()
    assert tracker.problem() == ""
    assert not tracker.end(TrackingEnd("Succeeded"), PATIENCE)
    assert len(mlflow.asked) == 1


def test_if_the_process_that_had_the_job_is_gone_its_run_was_killed(
    feed: Path, start: Start, mlflow: SmallMLflow
) -> None:
    tracker = start(mlflow.uri, at_loss="Killed")
    tracker.wait_for_run(PATIENCE)
    write(feed, 0.5)
    assert tracker._process.stdin is not None
    tracker._process.stdin.close()  # as the kernel does
    until(lambda: mlflow.run["status"] == "KILLED")
    assert mlflow.metrics() == {"loss": [(0, 0.5)]}
    assert tracker._process.wait(PATIENCE) == 0


def test_a_job_that_goes_on_stays_running_and_is_gone_on_with(
    feed: Path, start: Start, mlflow: SmallMLflow
) -> None:
    first = start(mlflow.uri, parameters={"lr": "0.1"})
    run = first.wait_for_run(PATIENCE)
    write(feed, 0.5)
    assert first.end(None, PATIENCE)
    assert (mlflow.run["status"], mlflow.metrics()) == ("RUNNING", {"loss": [(0, 0.5)]})
    again = start(mlflow.uri, run=run, parameters={"lr": "0.2"})
    assert again.wait_for_run(PATIENCE) == run
    assert again.end(TrackingEnd("Succeeded"), PATIENCE)
    assert (mlflow.run["status"], mlflow.run["params"]) == ("FINISHED", {"lr": "0.1"})


def test_a_run_that_was_deleted_there_is_followed_by_a_new_one(start: Start, mlflow: SmallMLflow) -> None:
    assert start(mlflow.uri, run="gone").wait_for_run(PATIENCE) == "run1"
