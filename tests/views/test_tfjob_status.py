from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tfyard.errors import Invalid
from tfyard.model import Cluster, Condition, Ending, Failure, RoleMemory, RoleStatus, Status, format_path
from tfyard.views.tfjob_status import decode_status, dump_status, load_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = Status(
    phase="Running",
    conditions=(Condition("Created", "True", "TFJobCreated", "made", NOW, NOW),),
    replica_statuses={"Worker": RoleStatus(active=2, ready="2/2", selector="a=b")},
    tasks={"Worker": RoleMemory(attempts={"3": 2}, finished="0-1,7", retries=1)},
    cluster=Cluster(services="per-replica", domain="cluster.local", dialect="tf1"),
    failure=Failure(cause="TaskFailed", task="worker-3", exit_code=1, message="x"),
    endings=(Ending(task="worker-3", attempt=2, finished=NOW, exit_code=1, message="x"),),
    start_time=NOW,
    observed_generation=4,
)


def read(raw: Any) -> Status:
    """The status from plain data and from JSON: both agree, also about problems."""
    results: list[Any] = []
    for way in (
        lambda: load_status({"status": raw}),
        lambda: decode_status(msgspec.json.encode(raw)),
    ):
        try:
            results.append(way())
        except Invalid as problem:
            results.append(problem.problems)
    assert results[0] == results[1]
    return load_status({"status": raw})


def test_a_status_comes_back_as_it_was_stored() -> None:
    assert read(dump_status(FULL)) == FULL
    assert dump_status(Status()) == {}
    assert load_status({}) == Status()


def test_the_status_of_another_operator_is_read_as_far_as_it_is_known() -> None:
    condition = {"type": "Running", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "new": 1}
    raw = {
        "conditions": [condition],
        "replicaStatuses": {"PS": {}, "Worker": {"active": 1, "labelSelector": {}}},
        "tfReplicaStatuses": {"Worker": {"active": 1}},
        "startTime": None,
    }
    assert read(raw) == Status(
        conditions=(Condition("Running", "True", last_update_time=NOW),),
        replica_statuses={"PS": RoleStatus(), "Worker": RoleStatus(active=1)},
    )


@pytest.mark.parametrize(
    ("raw", "finished"),
    [
        ({"phase": "Done", "state": "Succeeded"}, "Succeeded"),
        ({"phase": "Done", "state": "Failed"}, "Failed"),
        ({"phase": "CleanUp", "state": "Succeeded"}, "Succeeded"),
        ({"phase": "Failed", "state": "Unknown", "reason": "invalid job spec"}, "Failed"),
        ({"phase": "Running", "state": "Running"}, None),
        ({"phase": "", "state": "Unknown", "conditions": None}, None),
    ],
)
def test_a_job_that_v1alpha1_finished_stays_finished(raw: dict[str, Any], finished: str | None) -> None:
    replicas = [{"tf_replica_type": "MASTER", "state": "Succeeded", "ReplicasStates": {"Succeeded": 1}}]
    status = read({**raw, "replicaStatuses": replicas})
    assert [condition.type for condition in status.conditions] == ([finished] if finished else [])
    assert status.is_finished is (finished is not None)


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ("x", "status", "Expected `object`, got `str`"),
        ([1], "status", "Expected `object`, got `array`"),
        ({"conditions": 1}, "status.conditions", "Expected `array`, got `int`"),
        ({"conditions": [{"status": "True"}]}, "status.conditions[0]", "missing required field `type`"),
        ({"startTime": "soon"}, "status.startTime", "Invalid RFC3339"),
        ({"tasks": {"Worker": 1}}, "status.tasks.Worker", "Expected `object`, got `int`"),
        ({"tasks": {"PS": {"retries": "x"}}}, "status.tasks.PS.retries", "Expected `int`, got `str`"),
        ({"tasks": {"PS": {"finished": "0-"}}}, "status.tasks.PS.finished", "must be indexes such as 0-2,7"),
        ({"tasks": {"PS": {"attempts": {"-1": 1}}}}, "status.tasks.PS.attempts[-1]", "must be an index"),
    ],
)
def test_an_invalid_status_is_a_problem_with_its_path(raw: Any, path: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(raw)
    (problem,) = caught.value.problems
    assert format_path(problem.path) == path
    assert message in problem.message


def test_all_problems_of_a_status_are_reported_at_once() -> None:
    def places(tasks: Any, **more: Any) -> list[str]:
        with pytest.raises(Invalid) as caught:
            read({"tasks": tasks, **more})
        return [format_path(problem.path) for problem in caught.value.problems]

    tasks = {"PS": {"finished": "x", "attempts": {"x": 1}}, "Worker": {"finished": "0;1"}}
    expected = ["status.tasks.PS.attempts.x", "status.tasks.PS.finished", "status.tasks.Worker.finished"]
    assert places(tasks) == expected
    tasks = {"PS": {"finished": []}, "Worker": {"attempts": {"0": "x"}}}
    expected = [
        "status.tasks.PS.finished",
        "status.tasks.Worker.attempts[*]",
        "status.phase",
        "status.startTime",
    ]
    assert places(tasks, phase=7, startTime="soon") == expected
