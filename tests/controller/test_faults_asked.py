"""Programs that exit 0 because they were asked to stop have not finished, whatever stopped them."""

import asyncio
from functools import partial

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, evict, operator_with, stage
from tests.controller.test_faults_strangers import QUOTAS, blocked
from tfyard.kube import Forbidden, requests
from tfyard.testing import ControlPlane, Pod, Script, builders, eventually

pytestmark = pytest.mark.cluster

SECONDS = 20.0
"""Seconds within which a pod that was taken away is replaced, even on a slow machine: before its grace is over."""
POD = "train-worker-0"


def stops_well(pod: Pod) -> Script:
    """At once, or after the seconds in the name of its job."""
    delay = {"slow": 1.0}.get(pod.metadata.name.split("-")[0], 0.0)
    return Script(stop_after=delay, stop_exit_code=0)


async def delete(scene: Stage, pod: str) -> None:
    await scene.client.send(requests.delete(requests.PODS.path(scene.namespace, pod)))


async def replaced(scene: Stage, pod: str, attempts: int = 2, timeout: float = SECONDS) -> None:
    """Another attempt exists, and the job goes on."""

    async def look() -> None:
        assert sum(name == pod for name, _ in scene.chronicle.pods.values()) == attempts

    await eventually(look, timeout)
    job = pod.rpartition("-worker-")[0]
    status = await scene.phase("Running", job)
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} == {"Created", "Running"}
    assert not status["replicaStatuses"]["Worker"].get("succeeded")


async def forbid_pods(scene: Stage) -> None:
    """By a quota; its status is written by a controller that does not run here, so it is written by us."""
    hard = {"hard": {"pods": "0"}}
    quota = {"metadata": {"name": "none"}, "spec": hard}
    await scene.client.send(requests.create(QUOTAS.path(scene.namespace), quota))
    counted = {"status": {**hard, "used": {"pods": "0"}}}
    await scene.client.send(requests.patch(QUOTAS.path(scene.namespace, "none", "status"), counted))
    await eventually(lambda: refused(scene))


async def refused(scene: Stage) -> None:
    """The server takes a moment to learn its quotas."""
    path, said = requests.PODS.path(scene.namespace), ""
    try:
        await scene.client.send(requests.dry_run(requests.create(path, builders.pod("probe"))))
    except Forbidden as problem:
        said = str(problem)
    assert "exceeded quota" in said


async def test_a_pod_that_is_deleted_or_evicted_and_exits_0_is_replaced_within_seconds(
    control_plane: ControlPlane, namespace: str
) -> None:
    once = {"replicas": 1, "restartPolicy": "OnFailure"}
    ways = {"fast-deleted": delete, "slow-deleted": delete, "fast-evicted": evict, "slow-evicted": evict}
    async with (
        stage(control_plane, namespace, stops_well) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        for name in ways:
            await scene.submit(tfjob(name, policy={"backoffLimit": 0}, Worker=once))
        for name in ways:
            await scene.phase("Running", name)
        await asyncio.gather(*(ask(scene, f"{name}-worker-0") for name, ask in ways.items()))
        await asyncio.gather(*(replaced(scene, f"{name}-worker-0") for name in ways))


async def test_a_program_that_ended_by_itself_and_was_deleted_at_once_has_finished(
    control_plane: ControlPlane, namespace: str
) -> None:
    jobs = [f"train-{number}" for number in range(8)]
    async with (
        stage(control_plane, namespace, stops_well) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        for name in jobs:
            await scene.submit(tfjob(name, Worker=1))
        for name in jobs:
            await scene.phase("Running", name)

        async def end(name: str) -> None:
            await scene.kubelet.finish(f"{name}-worker-0")

            async def ended() -> None:
                path = requests.PODS.path(namespace, f"{name}-worker-0")
                assert (await scene.client.send(requests.get(path)))["status"]["phase"] == "Succeeded"

            await eventually(ended)
            await delete(scene, f"{name}-worker-0")

        await asyncio.gather(*map(end, jobs))
        for name in jobs:
            await scene.phase("Succeeded", name)
        assert len(scene.chronicle.pods) == len(jobs)


@pytest.mark.parametrize("job", ["fast", "slow"])
async def test_a_standby_that_takes_over_does_not_take_it_for_finished(
    control_plane: ControlPlane, namespace: str, job: str
) -> None:
    leading = asyncio.Event()
    async with (
        stage(control_plane, namespace, stops_well) as scene,
        operator_with(Counting(control_plane.admin), namespace, may_write=leading.is_set) as standby,
    ):
        async with operator_with(Counting(control_plane.admin), namespace):
            await scene.submit(tfjob(job, Worker=1))
            await scene.phase("Running", job)
            await delete(scene, f"{job}-worker-0")
        await asyncio.sleep(1.5)
        leading.set()
        standby.enqueue_all()
        await replaced(scene, f"{job}-worker-0")


async def test_a_standby_forgets_deleted_pods_when_the_leader_has_written_that_they_finished(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(admin), namespace, may_write=lambda: False) as standby,
        operator_with(Counting(admin), namespace),
    ):
        await scene.submit(tfjob(Chief=1, Worker=1))
        await scene.phase("Running")
        await scene.kubelet.finish(POD)

        async def finished() -> None:
            assert (await scene.status())["replicaStatuses"]["Worker"].get("succeeded") == 1

        await eventually(finished)
        await delete(scene, POD)

        async def forgotten() -> None:
            (known,) = standby.cache.jobs.values()
            assert [pod.name for pod in standby.cache.pods.of(known.as_owner)] == ["train-chief-0"]

        await eventually(forgotten)


async def test_pods_of_a_suspension_that_exit_0_run_again_though_the_resume_is_blocked_and_taken_over(
    control_plane: ControlPlane, namespace: str
) -> None:
    """No new pod takes their place in what the standby knows."""
    leading = asyncio.Event()
    async with (
        stage(control_plane, namespace, stops_well) as scene,
        operator_with(Counting(control_plane.admin), namespace, may_write=leading.is_set) as standby,
    ):
        async with operator_with(Counting(control_plane.admin), namespace):
            await scene.submit(tfjob(Worker=1))
            await scene.phase("Running")
            await forbid_pods(scene)
            await scene.patch({"spec": {"runPolicy": {"suspend": True}}})
            await scene.phase("Suspended")
            await scene.pods(set())
            await scene.patch({"spec": {"runPolicy": {"suspend": False}}})
            await blocked(scene, "QuotaExceeded")
        leading.set()
        standby.enqueue_all()
        await asyncio.sleep(1)
        await scene.client.send(requests.delete(QUOTAS.path(namespace, "none")))
        await replaced(scene, POD, timeout=30)


async def test_a_worker_that_is_scaled_away_and_back_while_it_leaves_runs_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace, stops_well) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.submit(tfjob("slow", Worker=2))
        await scene.phase("Running", "slow")
        scale = partial(scene.patch, name="slow")
        await scale({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1}}}})

        async def leaving() -> None:
            path = requests.PODS.path(namespace, "slow-worker-1")
            assert (await scene.client.send(requests.get(path)))["metadata"].get("deletionTimestamp")

        await eventually(leaving)
        await scale({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2}}}})
        await replaced(scene, "slow-worker-1")
