"""Pods that the cluster takes away cost no retry; a dead node's pod is waited for, and then removed by force."""

import asyncio

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tfyard.controller.operator import TFJOBS
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


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
async def test_finished_jobs_that_lie_around_are_looked_at_and_not_written(
    control_plane: ControlPlane, namespace: str, count: int
) -> None:
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene:
        await make_finished(scene, count)
        async with operator_with(client, namespace) as operator:
            await operator.synced.wait()
            assert len(operator.cache.jobs) == count

            async def idle() -> None:
                assert len(operator.queue) == 0
                assert not operator.queue._busy

            await eventually(idle)
            before = len(client.sent)
            await asyncio.sleep(3)
            assert client.writes == []
            assert len(client.sent) == before
            await scene.submit(tfjob(Worker=1))
            await scene.phase("Running")


async def make_finished(scene: Stage, count: int) -> None:
    when = "2026-01-01T00:00:00Z"
    ended = {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded", "lastTransitionTime": when}
    status = {"conditions": [ended], "completionTime": when, "phase": "Succeeded", "observedGeneration": 1}
    seats = asyncio.Semaphore(16)

    async def make(number: int) -> None:
        async with seats:
            name = f"old-{number}"
            await scene.submit(tfjob(name, Worker=1))
            path = TFJOBS.path(scene.namespace, name, "status")
            await scene.client.send(requests.patch(path, {"status": status}))

    await asyncio.gather(*(make(number) for number in range(count)))
