"""Loops that would hurt a cluster: tasks that fail at once, templates that the server refuses, annotations that a
policy removes."""

import asyncio
import time

import pytest

from tests.controller.cluster import Manifest, tfjob
from tests.controller.faults import ATTEMPT, Counting, Stage, operator_with, stage
from tests.controller.policies import changing
from tests.controller.test_faults_crowd import looks
from tests.controller.test_faults_refusals import pod_posts
from tests.controller.test_faults_strangers import blocked
from tfyard.backends.kubernetes.runner import PARALLEL_WRITES
from tfyard.model.backoff import Backoff
from tfyard.planner import Site
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

QUICK = Site(backoff=Backoff(first=2.0, longest=60.0))


async def made(scene: Stage, attempt: int) -> float:
    """When the pod of this attempt was there."""

    async def look() -> None:
        assert ("train-worker-0", attempt) in scene.chronicle.attempts

    await eventually(look)
    return time.monotonic()


@pytest.mark.long
async def test_a_crash_loop_waits_longer_each_time_though_the_operator_is_replaced(
    control_plane: ControlPlane, namespace: str
) -> None:
    crash = Script(run_for=0.1, exit_codes=(137,))
    async with stage(control_plane, namespace, crash) as scene:
        async with operator_with(Counting(control_plane.admin), namespace, site=QUICK):
            await scene.submit(tfjob(Worker={"restartPolicy": "ExitCode"}))
            first, second = await made(scene, 0), await made(scene, 1)
            third = await made(scene, 2)

            async def waits() -> None:
                message = (await scene.status())["conditions"][-1]["message"]
                assert message.endswith("worker-0 waits 4 s before attempt 4: exited with code 137")

            await eventually(waits)
        async with operator_with(Counting(control_plane.admin), namespace, site=QUICK):
            fourth = await made(scene, 3)
    assert second - first < 2
    assert third - second >= 2
    assert fourth - third >= 4
    assert len(scene.chronicle.pods) == 4


def with_host_alias(replicas: int, ip: str) -> Manifest:
    """Workers with an address that the server checks, and nobody before it."""
    container = {"name": "tensorflow", "image": "example/train:1"}
    spec = {"containers": [container], "hostAliases": [{"ip": ip, "hostnames": ["data"]}]}
    return {"replicas": replicas, "template": {"spec": spec}}


MANY = 3 * PARALLEL_WRITES // 4


async def test_one_refusal_of_a_template_speaks_for_all_pods_of_its_role(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = Counting(control_plane.admin)
    async with (
        stage(control_plane, namespace, Script()) as scene,
        operator_with(client, namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=with_host_alias(MANY, "nowhere"), PS=2))
        condition = await blocked(scene, "Invalid")
        assert "cannot create pod train-worker-0: " in condition["message"]
        await scene.pods({"train-ps-0", "train-ps-1"})
        assert pod_posts(client) <= PARALLEL_WRITES // 4 + 2 + looks(operator)
        before = pod_posts(client)
        await asyncio.sleep(5)
        assert pod_posts(client) - before <= 6, "one at each try, ever later"

        async def tried() -> None:
            assert pod_posts(client) > before

        await eventually(tried)
        await scene.patch({"spec": {"tfReplicaSpecs": {"Worker": with_host_alias(MANY, "10.0.0.1")}}})
        await scene.phase("Running")
        await blocked(scene, "Unblocked", "False")


@pytest.mark.long
async def test_an_attempt_that_a_policy_removes_from_new_pods_is_reported_and_no_endless_loop(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Such a pod reads as attempt 0, which was given up: it was deleted and created for ever."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene:
        async with (
            changing(scene.client, namespace, "annotations", ATTEMPT),
            operator_with(client, namespace, site=QUICK),
        ):
            await scene.submit(tfjob(Worker={"replicas": 1, "restartPolicy": "ExitCode"}))
            await scene.phase("Running")
            await scene.kubelet.finish("train-worker-0", 137)
            condition = await blocked(scene, "AnnotationsRemoved")
            assert f"pod train-worker-0 lost its annotation {ATTEMPT}" in condition["message"]
            await asyncio.sleep(8)
            assert 3 <= pod_posts(client) <= 5, "after 2, 4 and 8 s"
            assert await blocked(scene, "AnnotationsRemoved") == condition, "it does not come and go"
        async with operator_with(Counting(control_plane.admin), namespace, site=QUICK):
            await scene.phase("Running")
            await blocked(scene, "Unblocked", "False")
