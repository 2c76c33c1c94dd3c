"""The server goes away, comes back, forgets, or stands still: jobs go on where they were."""

import asyncio

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

BRIEFLY = 3.0


async def finish(scene: Stage) -> None:
    for name in ("train-worker-0", "train-worker-1"):
        await scene.kubelet.finish(name)
    status = await scene.phase("Succeeded", timeout=60)
    assert "restarts" not in status["replicaStatuses"]["Worker"]
    assert scene.chronicle.twice == []
    await eventually(lambda: both_were_seen(scene))
    assert all(attempt == 0 for _, attempt in scene.chronicle.attempts)


async def both_were_seen(scene: Stage) -> None:
    assert {("train-worker-0", 0), ("train-worker-1", 0)} <= set(scene.chronicle.attempts)


async def stay_away(plane: ControlPlane, seconds: float) -> None:
    plane.apiserver.kill()
    await asyncio.sleep(seconds)
    await asyncio.to_thread(plane.restart, "kube-apiserver")


@pytest.mark.long
async def test_an_apiserver_that_is_away_for_a_moment_costs_nothing(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(Worker=2))
        await scene.phase("Running")
        await stay_away(control_plane, BRIEFLY)
        await finish(scene)


@pytest.mark.long
async def test_an_apiserver_that_is_away_for_a_minute_costs_nothing(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=2))
        await scene.phase("Running")
        await stay_away(control_plane, 57)  # and it takes seconds to come back
        await finish(scene)
        await scene.submit(tfjob("next", Worker=1))
        await scene.phase("Running", "next", timeout=60)
        assert operator.synced.is_set()


async def test_an_apiserver_killed_in_the_middle_of_the_creations_finds_the_rest_made_later(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace) as operator,
    ):
        await operator.synced.wait()
        await scene.submit(tfjob(Worker=60))
        while not operator.cache.pods:
            await asyncio.sleep(0.005)
        await stay_away(control_plane, 0.5)
        await scene.phase("Running", timeout=60)
        await scene.pods({f"train-worker-{index}" for index in range(60)}, timeout=60)
        assert scene.chronicle.twice == []


@pytest.mark.long
async def test_history_that_etcd_has_forgotten_is_listed_anew(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The apiserver restarts with an empty watch cache, and etcd no longer knows what we last saw."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=2))
        await scene.phase("Running")
        lists = client.reads
        control_plane.apiserver.kill()
        control_plane.compact()
        await asyncio.to_thread(control_plane.restart, "kube-apiserver")
        await scene.submit(tfjob("other", Worker=1))
        control_plane.compact()
        await scene.phase("Running", "other", timeout=60)
        await scene.kubelet.finish("other-worker-0")
        await scene.phase("Succeeded", "other", timeout=60)
        await finish(scene)
        assert client.reads > lists, "nothing was listed anew"


async def test_an_apiserver_that_stands_still_is_waited_for(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace, Script(start_after=0.2)) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(Worker=2))
        control_plane.apiserver.pause()
        await asyncio.sleep(BRIEFLY)
        control_plane.apiserver.resume()
        await scene.phase("Running", timeout=60)
        await finish(scene)


@pytest.mark.long
async def test_an_apiserver_that_stands_still_for_longer_than_we_wait_for_an_answer_costs_nothing(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob(Worker=2))
        control_plane.apiserver.pause()
        await asyncio.sleep(40)
        control_plane.apiserver.resume()
        await scene.phase("Running", timeout=60)
        await finish(scene)
