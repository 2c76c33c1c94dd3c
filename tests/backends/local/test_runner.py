"""Tasks of a job as pods of a node."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.backends.local.node import ContainerEnded, FileSources, LocalNode, NodeEvent
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.backends.local.runner import LocalRunner, log_name, observed, task_of
from tfyard.backends.local.store import LocalStore
from tfyard.model import Amend, Create, Delete, DeleteJob, Job, Manifest, Pod, Task, Wait
from tfyard.node.states import ContainerState, Exited, PodState, Running, Waiting
from tfyard.planner import Site

BEGAN, ENDED = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
JOB = Job(name="j")


def pod(index: int = 0, command: str = "exec sleep 300") -> Manifest:
    labels = {"training.kubeflow.org/replica-type": "ps", "training.kubeflow.org/replica-index": str(index)}
    metadata = {"name": f"j-ps-{index}", "labels": labels, "annotations": {"tfyard.dev/attempt": "2"}}
    containers = [{"name": "tensorflow", "command": ["/bin/sh", "-c", command]}]
    return {"kind": "Pod", "metadata": metadata, "spec": {"restartPolicy": "Never", "containers": containers}}


def exited(code: int, reason: str = "", message: str = "", **fields: Any) -> ContainerState:
    return ContainerState(Exited(code, BEGAN, ENDED, reason, message), **fields)


RUNNING = ContainerState(Running(BEGAN), is_ready=True)


def seen(containers: dict[str, ContainerState], **fields: Any) -> Pod:
    """A pod with these containers: `init-…` are init containers, `side-…` are sidecars."""
    manifest = {**pod(), "metadata": {**pod()["metadata"], "uid": "u"}}
    inits = [{"name": name} for name in containers if name.startswith("init-")]
    inits += [{"name": name, "restartPolicy": "Always"} for name in containers if name.startswith("side-")]
    main = [{"name": name} for name in containers if not name.startswith(("init-", "side-"))]
    manifest["spec"] = {**manifest["spec"], "initContainers": inits, "containers": main}
    known = {"phase": "Running", "ip": "", "started": BEGAN, "changed": BEGAN}
    return observed(manifest, PodState(containers=containers, **{**known, **fields}))


def test_a_pod_names_its_task_and_its_logs_after_it() -> None:
    assert task_of(pod(3)) == Task("PS", 3)
    assert log_name(Task("PS", 3), "tensorflow") == "ps-3"
    assert log_name(Task("PS", 3), "helper") == "ps-3.helper"


def test_the_training_container_counts_for_the_task() -> None:
    failed = seen(
        {"first": exited(1), "tensorflow": exited(9, "OOMKilled", "no memory", restarts=2)}, phase="Failed"
    )
    assert (failed.task, failed.attempt, failed.uid) == (Task("PS", 0), 2, "u")
    assert (failed.exit_code, failed.reason, failed.message, failed.restarts) == (
        9,
        "OOMKilled",
        "no memory",
        2,
    )
    assert (failed.ready, failed.disrupted, failed.end) == (False, False, "Failed")


@pytest.mark.parametrize("trainer", [ContainerState(Waiting("PodInitializing")), exited(0)])
def test_an_init_container_that_failed_counts_if_the_training_container_has_not(
    trainer: ContainerState,
) -> None:
    assert seen({"init-fetch": exited(7), "tensorflow": trainer}).exit_code == 7


def test_a_restart_in_place_tells_of_the_run_before_and_of_the_present_one() -> None:
    crashed = exited(137, "OOMKilled", restarts=1, restart_due=True)
    due = seen({"tensorflow": crashed})
    assert (due.wait, due.restart_due, due.end) == (Wait("CrashLoop", since=ENDED), True, "")
    assert (due.run_started, due.run_ended, due.running_since) == (BEGAN, ENDED, None)
    ended = crashed.ended
    again = seen({"tensorflow": replace(crashed, current=Running(ENDED), last=ended, restart_due=False)})
    assert (again.reason, again.run_ended, again.running_since, again.wait) == (
        "OOMKilled",
        ENDED,
        ENDED,
        None,
    )


def test_a_sidecar_never_counts_for_the_task() -> None:
    task_pod = seen({"side-proxy": exited(7), "tensorflow": RUNNING})
    assert (task_pod.exit_code, task_pod.ready) == (None, True)


def test_a_task_ends_with_its_training_container_whatever_the_others_do() -> None:
    lingers = seen({"tensorflow": exited(0), "proxy": RUNNING, "broken": exited(9)})
    assert (lingers.phase, lingers.end, lingers.lingers_since) == ("Running", "Succeeded", ENDED)
    over = seen({"tensorflow": exited(0), "broken": exited(9)}, phase="Failed")
    assert (over.end, over.lingers_since) == ("Succeeded", None)


def test_a_node_knows_that_a_container_with_rules_of_its_own_is_not_started_again() -> None:
    """On a cluster, only the pod's phase tells that."""
    manifest = {**pod(), "metadata": {**pod()["metadata"], "uid": "u"}}
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    trainer = {"name": "tensorflow", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    manifest["spec"] = {"restartPolicy": "Never", "containers": [trainer, {"name": "shipper"}]}
    containers = {"tensorflow": exited(1), "shipper": RUNNING}
    ended = observed(
        manifest, PodState(phase="Running", ip="", started=BEGAN, changed=BEGAN, containers=containers)
    )
    assert (ended.end, ended.lingers_since) == ("Failed", ENDED)


def test_an_evicted_pod_is_disrupted_unless_it_is_its_own_fault() -> None:
    taken = {"phase": "Failed", "reason": "Preempted"}
    preempted = seen({"tensorflow": exited(143)}, **taken)
    assert (preempted.disrupted, preempted.reason, preempted.end) == (True, "Preempted", "Failed")
    own = seen({"tensorflow": exited(137)}, phase="Failed", reason="Evicted", message="too large")
    assert (own.disrupted, own.reason, own.message) == (False, "Evicted", "too large")


def runner_of(folder: Path, events: list[NodeEvent]) -> tuple[LocalNode, LocalRunner]:
    node = LocalNode(folder, os.environ, events.append, FileSources(folder / "volumes"))
    store = LocalStore(RunDirectory(folder), lambda _event: None)
    return node, LocalRunner(node, store, Site(), lambda manifest, _task: manifest)


async def until(node: LocalNode, is_so: Any) -> None:
    while not is_so():
        node.change.clear()
        await asyncio.wait_for(node.change.wait(), 60)


@pytest.mark.processes
async def test_applying_actions_twice_does_no_harm(tmp_path: Path) -> None:
    node, runner = runner_of(tmp_path, [])
    async with node:
        for _ in range(2):
            await runner.apply(JOB, [Create(pod(0)), Create(pod(1)), Delete("Pod", "j-ps-7")])
        assert [seen.name for seen in (await runner.observe(JOB)).pods] == ["j-ps-0", "j-ps-1"]
        assert sorted(runner.tasks().values()) == ["ps-0", "ps-1"]
        await until(node, lambda: all(each.is_running for each in node.pods.values()))
        assert (runner.evict("ps-1", "Preempted"), runner.evict("ps-2", "Preempted")) == (30, None)
        await runner.apply(JOB, [Delete("Pod", "j-ps-0", force=True), DeleteJob()])
        (first, second) = (await runner.observe(JOB)).pods
        assert (first.deleting is not None, second.disrupted, runner.is_deleted) == (True, True, True)
        assert (first.asked_to_stop, second.asked_to_stop) == (True, False)
        runner.stop_all(force=True)
        await until(node, lambda: not node.pods)


@pytest.mark.processes
@pytest.mark.parametrize(("code", "end"), [(0, "Succeeded"), (3, "Failed")])
async def test_the_end_of_the_program_is_the_tasks_and_the_others_are_stopped(
    tmp_path: Path, code: int, end: str
) -> None:
    events: list[NodeEvent] = []
    node, runner = runner_of(tmp_path, events)
    go = tmp_path / "go"
    made = pod(0, f"while ! [ -e {go} ]; do sleep 0.05; done; exit {code}")
    others = {"proxy": "exec sleep 300", "broken": "exit 9"}
    made["spec"]["containers"] += [
        {"name": name, "command": ["/bin/sh", "-c", command]} for name, command in others.items()
    ]

    def ends() -> dict[str, bool]:
        return {
            each.started.container: each.is_stopped for each in events if isinstance(each, ContainerEnded)
        }

    async with node:
        await runner.apply(JOB, [Create(made)])
        await until(node, lambda: ends() == {"broken": False})
        assert [seen.end for seen in (await runner.observe(JOB)).pods] == [""]
        go.touch()
        await until(node, lambda: "tensorflow" in ends())
        (ended,) = (await runner.observe(JOB)).pods
        assert (ended.end, ended.phase, ended.lingers_since is not None) == (end, "Running", True)
        await runner.apply(JOB, [Amend("Pod", "j-ps-0", {}, "")])
        assert [(seen.end, seen.asked_to_stop) for seen in (await runner.observe(JOB)).pods] == [(end, False)]
        await until(node, lambda: not node.pods)
    assert ends() == {"tensorflow": False, "proxy": True, "broken": False}
