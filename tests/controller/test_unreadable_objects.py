"""Objects that cannot be read: each costs only itself, and its job says so."""

import asyncio
import logging
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Stage, operator_with, stage
from tests.controller.prometheus import parse
from tests.controller.test_faults_strangers import blocked
from tests.remote.asking import ask
from tfyard.controller.operator import Operator
from tfyard.kube import Client, Request, requests
from tfyard.kube.transport import ANYTHING
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

YEAR_0 = "0000-06-01T00:00:00Z"
"""A time that servers accept, though no calendar of Python's has it."""
POD = "train-worker-0"


async def change_status(scene: Stage, status: dict[str, Any], pod: str = POD) -> None:
    path = requests.PODS.path(scene.namespace, pod, "status")
    await scene.client.send(requests.patch(path, {"status": status}))


def unreadable(operator: Operator) -> float:
    name = "tfyard_unreadable_objects"
    return parse(operator.metrics.render())[name].samples[name, ()]


async def uid_of(scene: Stage, pod: str = POD) -> str:
    found = await scene.client.send(requests.get(requests.PODS.path(scene.namespace, pod)))
    return str(found["metadata"]["uid"])


async def test_an_absurd_grace_period_does_not_keep_an_operator_from_starting(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The trainer has ended after it was asked to, and a sidecar runs on: so the pod is still there."""
    async with stage(control_plane, namespace, Script(stop_after=600)) as scene:
        async with operator_with(control_plane.client(), namespace):
            containers = [{"name": name, "image": "example/train:1"} for name in ("tensorflow", "proxy")]
            spec = {"containers": containers, "terminationGracePeriodSeconds": 100_000_000_000}
            await scene.submit(tfjob(Worker={"replicas": 1, "template": {"spec": spec}}))
            await scene.phase("Running")
        path = requests.PODS.path(namespace, POD)
        await scene.client.send(requests.delete(path))
        ended = {"exitCode": 0, "finishedAt": "2026-01-01T00:00:00Z"}
        common = {"image": "example/train:1", "imageID": "", "ready": False, "restartCount": 0}
        statuses = [
            {**common, "name": "tensorflow", "state": {"terminated": ended}},
            {**common, "name": "proxy", "state": {"running": {}}},
        ]
        await change_status(scene, {"containerStatuses": statuses})
        async with operator_with(control_plane.client(), namespace) as second:
            await scene.submit(tfjob("other", Worker=1))
            await scene.phase("Running", "other")
            assert unreadable(second) == 0


@pytest.mark.parametrize("by", ["watch", "list"])
async def test_a_pod_that_cannot_be_read_blocks_its_job_and_is_neither_replaced_nor_counted(
    control_plane: ControlPlane, namespace: str, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with stage(control_plane, namespace) as scene:
        async with operator_with(control_plane.client(), namespace) as operator:
            await scene.submit(tfjob(Worker=2))
            await scene.phase("Running")
            before = await uid_of(scene)
            if by == "watch":
                await make_unreadable(scene)
                await check_blocked(scene, operator, control_plane)
        if by == "list":
            await make_unreadable(scene)
        async with operator_with(control_plane.client(), namespace) as operator:
            await check_blocked(scene, operator, control_plane)
            await change_status(scene, {"message": "another version of it"})
            await scene.kubelet.finish("train-worker-1")

            async def finished() -> None:
                assert (await scene.status())["replicaStatuses"]["Worker"].get("succeeded") == 1

            await eventually(finished)
            assert await uid_of(scene) == before, "it is not replaced"
            counts = (await scene.status())["replicaStatuses"]["Worker"]
            assert (counts.get("failed", 0), counts.get("active", 0)) == (0, 0), "its state is not known"
            await change_status(scene, {"startTime": "2026-01-01T00:00:00Z"})
            await blocked(scene, "Unblocked", "False")
            assert unreadable(operator) == 0
            await scene.kubelet.finish(POD)
            await scene.phase("Succeeded")
    lines = [each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage()]
    wanted = f"Pod {namespace}/{POD} cannot be read: status.startTime: Invalid RFC3339 encoded datetime"
    assert lines == [wanted] * (2 if by == "watch" else 1), "once for each operator"


async def make_unreadable(scene: Stage) -> None:
    await change_status(scene, {"startTime": YEAR_0})


async def check_blocked(scene: Stage, operator: Operator, plane: ControlPlane) -> None:
    condition = await blocked(scene, "Unreadable")
    assert condition["message"] == (
        f"pod {POD} cannot be read: status.startTime: Invalid RFC3339 encoded datetime"
    )

    async def counted() -> None:
        assert unreadable(operator) == 1

    await eventually(counted)
    answer = await asyncio.to_thread(ask, plane.admin, scene.namespace, "train")
    assert POD in answer.sentence, answer


class Broken(Client):
    """A client with an error of its own whenever a pod of one job is to be created, until it is repaired."""

    broken = "bad-worker-0"

    async def send(self, request: Request, into: Any = ANYTHING) -> Any:
        if request.method == "POST" and self.broken and self.broken.encode() in (request.body or b""):
            raise RuntimeError("a bug")
        return await super().send(request, into)


async def test_a_pass_that_raises_is_logged_once_and_counted_until_one_succeeds(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Broken(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace) as operator:
        await scene.submit(tfjob("bad", Worker=1))
        await scene.submit(tfjob("good", Worker=1))
        await scene.phase("Running", "good")
        await asyncio.sleep(2)  # for a few of its retries
        assert unreadable(operator) == 1
        lines = [each for each in caplog.records if "unexpected error" in each.getMessage()]
        assert [str(each.exc_info[1]) for each in lines if each.exc_info] == ["a bug"]
        client.broken = ""
        await scene.phase("Running", "bad")

        async def forgotten() -> None:
            assert unreadable(operator) == 0

        await eventually(forgotten)


async def test_a_succeeded_pod_that_can_be_read_ends_the_job_of_one_that_cannot(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene, operator_with(control_plane.client(), namespace):
        await scene.submit(tfjob(Chief=1, Worker=1))
        await scene.phase("Running")
        await make_unreadable(scene)
        await blocked(scene, "Unreadable")
        await scene.kubelet.finish("train-chief-0")
        await scene.phase("Succeeded")


async def test_a_suspended_job_has_its_unreadable_pod_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene, operator_with(control_plane.client(), namespace):
        await scene.submit(tfjob(Worker=1))
        await scene.phase("Running")
        await make_unreadable(scene)
        await blocked(scene, "Unreadable")
        await scene.patch({"spec": {"runPolicy": {"suspend": True}}})

        async def asked() -> None:
            pods = await scene.client.send(requests.get(requests.PODS.path(namespace)))
            assert all("deletionTimestamp" in pod["metadata"] for pod in pods["items"])

        await eventually(asked)
        await scene.phase("Suspended")
