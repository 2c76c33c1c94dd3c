"""Pods that the cluster takes away cost no retry; a dead node's pod is waited for, and then removed by force."""

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tfyard.kube import requests
from tfyard.planner.plan import OVERDUE_AFTER
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

NO_RETRY = {"backoffLimit": 0}
NEVER = {"replicas": 2, "restartPolicy": "Never"}
AGAIN = {("train-worker-0", 0), ("train-worker-1", 0), ("train-worker-1", 1)}


async def run_again(scene: Stage) -> None:
    async def look() -> None:
        assert set(scene.chronicle.attempts) == AGAIN

    await eventually(look, OVERDUE_AFTER + 30)
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
        path = requests.PODS.path(namespace, "train-worker-1", "eviction")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "train-worker-1"}}
        await scene.client.send(requests.create(path, eviction))
        await run_again(scene)


@pytest.mark.long
async def test_a_pod_on_a_lost_node_is_removed_by_force_when_its_time_is_long_over(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A node controller marks it for deletion, and no kubelet is there to confirm it."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace, nodes=2) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(policy=NO_RETRY, Worker=NEVER))
        await scene.phase("Running")
        path = requests.PODS.path(namespace, "train-worker-1")
        await scene.kubelet.lose_node((await scene.client.send(requests.get(path)))["spec"]["nodeName"])
        await scene.client.send(requests.delete(path, grace=1))
        await run_again(scene)
    assert [write for write in client.writes if "DELETE" in write] == [f"DELETE {path}"]
