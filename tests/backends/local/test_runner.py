"""Tasks of a job as pods of a node."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.backends.local.runner import LocalRunner, _observed, log_name, task_of
from tfyard.backends.local.store import LocalStore
from tfyard.model import Create, Delete, DeleteJob, Job, Manifest, Task, Wait
from tfyard.node.containers import Objects
from tfyard.node.node import Node
from tfyard.node.pod import ContainerState, Ended, PodState
from tfyard.node.volumes import Volumes

JOB = Job(name="j")


def pod(index: int = 0, command: str = "exec sleep 300") -> Manifest:
    labels = {"training.kubeflow.org/replica-type": "ps", "training.kubeflow.org/replica-index": str(index)}
    metadata = {"name": f"j-ps-{index}", "labels": labels, "annotations": {"tfyard.dev/attempt": "2"}}
    containers = [{"name": "tensorflow", "command": ["/bin/sh", "-c", command]}]
    return {"kind": "Pod", "metadata": metadata, "spec": {"restartPolicy": "Never", "containers": containers}}


def container(name: str = "tensorflow", **fields: Any) -> ContainerState:
    return ContainerState(name=name, **fields)


def state(*containers: ContainerState, **fields: Any) -> PodState:
    manifest = {**pod(), "metadata": {**pod()["metadata"], "uid": "u"}}
    return PodState(manifest=manifest, containers=containers, **{"phase": "Running", **fields})


def test_a_pod_names_its_task_and_its_logs_after_it() -> None:
    assert task_of(pod(3)) == Task("PS", 3)
    assert log_name(Task("PS", 3), "tensorflow") == "ps-3"
    assert log_name(Task("PS", 3), "helper") == "ps-3.helper"


def test_the_container_that_trains_speaks_for_the_task() -> None:
    seen = _observed(
        state(
            container("first", exit_code=1, reason="Error"),
            container(exit_code=9, reason="OOMKilled", message="no memory", starts=3),
            phase="Failed",
        )
    )
    assert (seen.task, seen.attempt, seen.uid) == (Task("PS", 0), 2, "u")
    assert (seen.exit_code, seen.reason, seen.message, seen.restarts) == (9, "OOMKilled", "no memory", 2)
    assert (seen.ready, seen.disrupted) == (False, False)


@pytest.mark.parametrize("code", [None, 0])
def test_if_it_has_not_failed_another_one_that_has_does(code: int | None) -> None:
    init = container("fetch", is_init=True, exit_code=7)
    assert _observed(state(init, container(exit_code=code))).exit_code == 7


def test_a_restart_in_place_tells_of_the_run_before_and_of_the_present_one() -> None:
    began, ended = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    crashed = container(exit_code=137, starts=2, ended=Ended(began, ended, "OOMKilled"), started=began)
    due = _observed(state(crashed, restart_due=True))
    assert due.wait == Wait("CrashLoop", since=ended)
    assert (due.run_started, due.run_ended, due.running_since) == (began, ended, None)
    again = _observed(state(replace(crashed, is_running=True, started=ended)))
    assert (again.reason, again.run_ended, again.running_since, again.wait) == (
        "OOMKilled",
        ended,
        ended,
        None,
    )


def test_a_sidecar_never_does() -> None:
    sidecar = container("proxy", is_init=True, is_sidecar=True, exit_code=7)
    assert _observed(state(sidecar, container(is_running=True))).exit_code is None
    assert _observed(state(sidecar, container(is_running=True))).ready


def test_an_evicted_pod_is_disrupted() -> None:
    seen = _observed(state(container(exit_code=143, reason="Error"), phase="Failed", reason="Preempted"))
    assert (seen.disrupted, seen.reason) == (True, "Preempted")


@pytest.mark.processes
async def test_doing_it_twice_does_no_harm(tmp_path: Path) -> None:
    node = Node(tmp_path, os.environ, lambda _event: None)
    store = LocalStore(RunDirectory(tmp_path), lambda _event: None)
    runner = LocalRunner(node, store, Volumes(tmp_path, {}, Objects()), lambda manifest, _task: manifest)
    async with node:
        for _ in range(2):
            await runner.apply(JOB, [Create(pod(0)), Create(pod(1)), Delete("Pod", "j-ps-7")])
        assert [seen.name for seen in (await runner.observe(JOB)).pods] == ["j-ps-0", "j-ps-1"]
        assert sorted(runner.tasks().values()) == ["ps-0", "ps-1"]
        assert (runner.evict("ps-1"), runner.evict("ps-2")) == (30, None)
        await runner.apply(JOB, [Delete("Pod", "j-ps-0", force=True), DeleteJob()])
        (first, second) = (await runner.observe(JOB)).pods
        assert (first.deleting is not None, second.disrupted, runner.is_deleted) == (True, True, True)
        runner.stop_all(force=True)
        while node.states():
            node.change.clear()
            await node.change.wait()
