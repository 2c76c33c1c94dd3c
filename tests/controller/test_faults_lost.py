"""Pods that the cluster takes away cost no retry; a dead node's pod is removed by force once it surely is dead."""

import asyncio
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, evict, operator_with, stage
from tests.controller.test_faults_strangers import CALM, blocked, permit, requests_while_blocked
from tests.remote.asking import ask
from tfyard.backends.kubernetes.objects import OUT_OF_SERVICE
from tfyard.kube import requests
from tfyard.planner import plan
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

NO_RETRY = {"backoffLimit": 0}
NEVER = {"replicas": 2, "restartPolicy": "Never"}
AGAIN = {("train-worker-0", 0), ("train-worker-1", 0), ("train-worker-1", 1)}


async def run_again(scene: Stage) -> None:
    async def look() -> None:
        assert set(scene.chronicle.attempts) == AGAIN

    await eventually(look, 60)
    await scene.phase("Running", timeout=60)
    await scene.kubelet.finish("train-worker-0")
    status = await scene.phase("Succeeded")
    assert "restarts" not in status["replicaStatuses"]["Worker"]
    assert scene.chronicle.twice == []


async def test_an_evicted_pod_is_replaced_without_a_retry(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(policy=NO_RETRY, Worker=NEVER))
        await scene.phase("Running")
        await scene.kubelet.evict("train-worker-1")
        await run_again(scene)


async def test_a_preempted_pod_is_replaced_without_a_retry_even_if_it_ends_well(
    control_plane: ControlPlane, namespace: str
) -> None:
    saves_its_work = Script(stop_after=0.5, stop_exit_code=0)
    async with (
        stage(control_plane, namespace, saves_its_work) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(policy=NO_RETRY, Worker=NEVER))
        await scene.phase("Running")
        await scene.kubelet.preempt("train-worker-1")
        await run_again(scene)


async def test_a_drained_pod_is_replaced_without_a_retry(control_plane: ControlPlane, namespace: str) -> None:
    async with (
        stage(control_plane, namespace, Script(stop_after=0.3)) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(policy=NO_RETRY, Worker=NEVER))
        await scene.phase("Running")
        await evict(scene, "train-worker-1")
        await run_again(scene)


@pytest.mark.parametrize("grace", [None, 0])
async def test_a_pod_that_somebody_deletes_leaves_an_ending_however_quickly_it_is_gone(
    control_plane: ControlPlane, namespace: str, grace: int | None
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(policy=NO_RETRY, Worker=NEVER))
        await eventually(lambda: both_run(scene))
        await scene.phase("Running")
        await scene.client.send(requests.delete(requests.PODS.path(namespace, "train-worker-1"), grace=grace))
        await run_again(scene)
        (ending,) = (await scene.status())["endings"]
        assert (ending["task"], ending["attempt"], ending["reason"]) == ("worker-1", 1, "Deleted")


@pytest.mark.parametrize("restart", ["Never", "ExitCode"])
async def test_workers_that_save_together_and_exit_with_42_run_again_together_without_a_retry(
    control_plane: ControlPlane, namespace: str, restart: str
) -> None:
    """As with PreemptionCheckpointHandler: one worker is asked to go, and all end."""
    async with (
        stage(control_plane, namespace, Script(stop_after=2, stop_exit_code=42)) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(policy=NO_RETRY, Worker={"replicas": 2, "restartPolicy": restart}))
        await scene.phase("Running")
        await evict(scene, "train-worker-1")
        await scene.phase("Restarting")
        await scene.kubelet.finish("train-worker-0", 42)
        await scene.seen({(f"train-worker-{index}", attempt) for index in (0, 1) for attempt in (0, 1)})
        status = await scene.phase("Running")
        lost = next(each for each in status["endings"] if each["task"] == "worker-0")
        assert (lost["reason"], lost["peer"], lost["exitCode"]) == ("PeerLost", "worker-1", 42)
        assert (status["disruption"]["restarted"], status.get("restarts", 0)) == (True, 0)
        answer = await asyncio.to_thread(ask, control_plane.admin, namespace, "train")
        (earlier,) = (cause for cause in answer.causes if cause.kind == "peer-lost")
        assert (answer.code, earlier.tasks, earlier.is_past) == (0, ("worker-0",), True)
        assert earlier.sentence.startswith("worker-0 saved a checkpoint and ended with code 42")
        await scene.kubelet.finish("train-worker-0")
        await scene.phase("Succeeded")
        assert scene.chronicle.twice == []


@pytest.mark.parametrize("restart", ["Never", "ExitCode", "OnFailure"])
async def test_a_node_that_is_rebooted_costs_no_retry(
    control_plane: ControlPlane, namespace: str, restart: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        one_retry = {"backoffLimit": 1}  # at 0 the kubelet may restart nothing
        await scene.submit(tfjob(policy=one_retry, Worker={"replicas": 2, "restartPolicy": restart}))
        await eventually(lambda: both_run(scene))
        await scene.phase("Running")
        (node,) = scene.kubelet.nodes.names
        await scene.kubelet.lose_node(node)
        await scene.kubelet.find_node(node)
        await eventually(lambda: are_back(scene), 60)
        await scene.kubelet.finish("train-worker-0")
        status = await scene.phase("Succeeded")
        assert "restarts" not in status["replicaStatuses"]["Worker"]
        assert "retries" not in status["tasks"]["Worker"]
        reasons = {(each["exitCode"], each["reason"]) for each in status["endings"]}
        assert reasons == {(255, "Unknown")}
        assert scene.chronicle.twice == []


async def both_run(scene: Stage) -> list[Any]:
    pods = (await scene.client.send(requests.get(requests.PODS.path(scene.namespace))))["items"]
    runs = [each["status"].get("containerStatuses", [{"state": {}}])[0] for each in pods]
    assert [*("running" in each["state"] for each in runs)] == [True, True]
    return runs


async def are_back(scene: Stage) -> None:
    """Both workers run, in another pod or again in the same one."""
    runs = await both_run(scene)
    replaced = scene.chronicle.attempts.keys() == AGAIN | {("train-worker-0", 1)}
    assert replaced or [each["restartCount"] for each in runs] == [1, 1]


async def taint(scene: Stage, node: str) -> None:
    taints = [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]
    await scene.client.send(requests.patch(requests.NODES.path(name=node), {"spec": {"taints": taints}}))


@pytest.mark.long
async def test_a_pod_on_a_lost_node_is_removed_by_force_when_a_taint_says_that_the_machine_is_off(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node controller marks it for deletion, and no kubelet is there to confirm it. An operator that may not see
    nodes waits, and so does one that sees that the node may come back."""
    monkeypatch.setattr(plan, "OVERDUE_AFTER", 1.0)
    user = f"operator-{namespace}"
    blind, client = Counting(control_plane.access(user)), Counting(control_plane.admin)
    async with stage(control_plane, namespace, nodes=2) as scene:
        await permit(scene.client, namespace, user, pods=["*"])
        path = requests.PODS.path(namespace, "train-worker-1")
        async with operator_with(blind, namespace):
            await scene.submit(tfjob(policy=NO_RETRY, Worker=NEVER))
            await scene.phase("Running")
            node = (await scene.client.send(requests.get(path)))["spec"]["nodeName"]
            await scene.kubelet.lose_node(node)
            await scene.client.send(requests.delete(path, grace=1))
            condition = await blocked(scene, "PodTerminating")
            assert "because the operator may not get nodes" in condition["message"]
        async with operator_with(client, namespace):
            await eventually(lambda: says(scene, f"node {node} is not ready"))
            assert await requests_while_blocked(client) < CALM
            assert [write for write in client.writes + blind.writes if "DELETE" in write] == []
            await taint(scene, node)
            await run_again(scene)
    assert [write for write in client.writes if "DELETE" in write] == [f"DELETE {path}"]


async def says(scene: Stage, text: str) -> None:
    assert text in (await blocked(scene, "PodTerminating"))["message"]
