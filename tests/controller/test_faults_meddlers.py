"""People who edit what is ours, delete while we work, and take the namespace away."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tests.controller.test_faults_strangers import blocked, stop_retrying
from tfyard.backends.kubernetes.resources import TFJOBS
from tfyard.controller.operator import Operator
from tfyard.kube import NotFound, Request, requests
from tfyard.model.names import OPERATOR_NAME, REPLICA_INDEX
from tfyard.testing import ControlPlane, Pod, Script, eventually

pytestmark = pytest.mark.cluster


async def label(scene: Stage, pod: str, key: str, value: str | None) -> None:
    body = {"metadata": {"labels": {key: value}}}
    await scene.client.send(requests.patch(requests.PODS.path(scene.namespace, pod), body))


@pytest.mark.parametrize("key", [OPERATOR_NAME, REPLICA_INDEX])
async def test_a_pod_whose_labels_are_taken_is_told_of_until_it_has_them_again(
    control_plane: ControlPlane, namespace: str, key: str
) -> None:
    """Without them nobody would see how it ends; and its name is taken, so no other can take its place."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=1))
        await scene.phase("Running")
        pod = await scene.client.send(requests.get(requests.PODS.path(namespace, "train-worker-0")))
        await label(scene, "train-worker-0", key, None)
        condition = await blocked(scene, "LabelsMissing")
        assert f"pod train-worker-0 no longer has the label {key}=" in condition["message"]
        await label(scene, "train-worker-0", key, pod["metadata"]["labels"][key])
        await blocked(scene, "Unblocked", "False")
        await scene.kubelet.finish("train-worker-0")
        await scene.phase("Succeeded")
        await scene.seen(1)


async def test_a_pod_and_a_service_that_are_no_longer_the_jobs_are_told_of_until_they_are_gone(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Somebody removed their ownerReferences: they hold the names, and nothing else of them is the job's."""
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(control_plane.client(), namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=1, PS=1))
        await scene.phase("Running")
        ours = [requests.PODS.path(namespace, "train-worker-0"), requests.SERVICES.path(namespace, "train")]
        for path in ours:
            await scene.client.send(requests.patch(path, {"metadata": {"ownerReferences": None}}))
        condition = await blocked(scene, "NameTaken")
        assert "exists and is not this job's" in condition["message"]
        await stop_retrying(operator)
        for path in ours:
            await scene.client.send(requests.delete(path, grace=0))
        await blocked(scene, "Unblocked", "False")
        await scene.phase("Running")
        assert await scene.names(requests.SERVICES) == {"train"}
        assert await scene.names() == {"train-worker-0", "train-ps-0"}


async def test_a_namespace_that_is_being_deleted_is_told_once_and_without_alarm(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No controller deletes it here, so it stays as it is for as long as we like."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=2))
        await scene.phase("Running")
        await scene.client.send(requests.delete(requests.NAMESPACES.path(name=namespace)))
        await scene.client.send(requests.delete(requests.PODS.path(namespace, "train-worker-1"), grace=0))
        await blocked(scene, "NamespaceTerminating")
        await asyncio.sleep(3)
        assert [r.getMessage() for r in caplog.records if r.levelname not in ("INFO", "DEBUG")] == []


async def test_nothing_is_remembered_of_jobs_that_are_gone(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Finished and gone by itself, or deleted: with an hour to live, while it is blocked, and in the middle of a
    pass that then fails."""

    def script(pod: Pod) -> Script:
        return Script(run_for=None if pod.metadata.name.startswith("stuck-") else 0.1)

    async with stage(control_plane, namespace, script) as scene:
        taken = []

        class Overtaken(Counting):
            """The job `hasty` is deleted between its first pass's requests."""

            async def send(self, request: Request, into: Any = None) -> Any:
                if "/tfjobs/hasty/status" in request.path and not taken:
                    taken.append(request)
                    await scene.client.send(requests.delete(TFJOBS.path(namespace, "hasty")))
                    await asyncio.sleep(1)
                return await (super().send(request, into) if into else super().send(request))

        async with (
            operator_with(Overtaken(control_plane.admin), namespace) as operator,
            operator_with(control_plane.client(), namespace, may_write=lambda: False) as standby,
        ):
            short = {"ttlSecondsAfterFinished": 0, "cleanPodPolicy": "All"}
            await scene.submit(tfjob("short", short, Worker=2))
            await scene.submit(tfjob("hasty", Worker=2))
            stranger = {"metadata": {"name": "stuck"}, "spec": {"ports": [{"port": 80}]}}
            await scene.client.send(requests.create(requests.SERVICES.path(namespace), stranger))
            await scene.submit(tfjob("stuck", Worker=2))
            await scene.submit(tfjob("kept", {"ttlSecondsAfterFinished": 3600}, Worker=1))
            await scene.phase("Succeeded", "kept")
            await blocked(scene, "NameTaken", name="stuck")

            async def others_are_gone() -> None:
                assert await scene.jobs() == {"stuck", "kept"}

            await eventually(others_are_gone)
            for name in ("stuck", "kept"):
                await scene.client.send(requests.delete(TFJOBS.path(namespace, name)))

            async def cleared() -> None:
                for path in (requests.PODS.path(namespace), requests.SERVICES.path(namespace)):
                    for item in (await scene.client.send(requests.get(path)))["items"]:
                        if item["metadata"]["name"] != "stuck":
                            with suppress(NotFound):
                                name = item["metadata"]["name"]
                                await scene.client.send(requests.delete(f"{path}/{name}", grace=0))
                await empty(operator)

            await eventually(cleared)
            await eventually(lambda: empty(standby))
        assert taken


async def empty(operator: Operator) -> None:
    """All that an operator remembers by job, wherever it does."""
    cache, queue, reconciler = operator.cache, operator.queue, operator.reconciler
    kept = [
        cache.jobs,
        cache.pods,
        cache.children,
        cache._keys,
        queue._backoffs,
        queue._timers,
        queue._waiting,
        cache.taken_names,
        cache.pods._pods._owner_of,
        cache.children._children._owner_of,
    ]
    kept += [operator.runner._obstacles, operator.runner._faults, operator.runner._lost]
    kept += [reconciler._jobs, reconciler._unreadable._reported]
    kept += [operator.informers.changes._next_reconcile, operator.worker._deferred]
    assert [len(each) for each in kept] == [0] * len(kept), kept
