"""Users who edit the operator's objects, delete them meanwhile, or delete the namespace."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, end, operator_with, stage
from tests.controller.test_faults_strangers import blocked, stop_retrying
from tests.controller.test_old_jobs import OLD
from tfyard.controller.operator import Operator, OperatorSettings
from tfyard.kube import NotFound, Request, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.model.names import OPERATOR_NAME, REPLICA_INDEX, SERVICES
from tfyard.testing import ControlPlane, Pod, Script, eventually

pytestmark = pytest.mark.cluster


async def label(scene: Stage, pod: str, key: str, value: str | None) -> None:
    body = {"metadata": {"labels": {key: value}}}
    await scene.client.send(requests.patch(requests.PODS.path(scene.namespace, pod), body))


@pytest.mark.parametrize("key", [OPERATOR_NAME, REPLICA_INDEX])
async def test_a_pod_whose_labels_were_removed_is_reported_until_it_has_them_again(
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


async def test_a_pod_and_a_service_that_are_no_longer_the_jobs_are_reported_until_they_are_gone(
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


@pytest.mark.parametrize(
    "edit",
    [
        {"selector": {OPERATOR_NAME: None, "app": "other"}},
        {"ports": [{"name": "web", "port": 80}]},
        {"publishNotReadyAddresses": False},
    ],
)
async def test_a_service_that_was_edited_is_repaired(
    control_plane: ControlPlane, namespace: str, edit: dict[str, Any]
) -> None:
    """Tasks would not find each other by their names any more."""
    client, path = Counting(control_plane.admin), requests.SERVICES.path(namespace, "train")
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=1, PS=1))
        await scene.phase("Running")
        made = await scene.client.send(requests.get(path))
        await scene.client.send(requests.patch(path, {"spec": edit, "metadata": {"labels": {"mine": "yes"}}}))

        async def is_repaired() -> None:
            found = await scene.client.send(requests.get(path))
            assert found["spec"] == made["spec"]
            assert found["metadata"]["labels"]["mine"] == "yes", "nothing else is touched"

        await eventually(is_repaired)
        await asyncio.sleep(1)
        assert client.writes.count(f"PATCH {path}") == 1
        events = (await scene.client.send(requests.get(requests.EVENTS.path(namespace))))["items"]
        told = [each["message"] for each in events if each["reason"] == "RepairedService"]
        assert told == ["Another client had changed selector or ports: put them back in service: train"]


async def test_a_service_of_a_job_that_is_left_alone_is_not_written(
    control_plane: ControlPlane, namespace: str
) -> None:
    """With every kind of port that a template may have, and of TensorBoard; what the server adds is no edit."""
    client = Counting(control_plane.admin)
    ports = [{"containerPort": 2222}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}]
    container = {"name": "tensorflow", "image": "example/train:1", "ports": ports}
    worker = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
    job = tfjob(Worker=worker, PS=1)
    job["metadata"]["annotations"] = {SERVICES: "per-replica"}
    old = {**OLD, "spec": {**OLD["spec"], "tensorboard": {"logDir": "/logs", "serviceType": "NodePort"}}}
    async with stage(control_plane, namespace) as scene, client:
        operator = Operator(client, OperatorSettings(namespaces=(namespace,)), [TFJOBS, OLD_TFJOBS])
        running = asyncio.create_task(operator.run())
        await scene.submit({**job, "metadata": {**job["metadata"], "name": "many"}})
        await scene.client.send(requests.create(OLD_TFJOBS.path(namespace), old))
        await scene.phase("Running", "many")

        async def has_board() -> None:
            assert len(await scene.names(requests.SERVICES)) >= 4

        await eventually(has_board)
        operator.enqueue_all()
        await asyncio.sleep(2)
        await end(running)
    assert [each for each in client.writes if each.startswith("PATCH")] == []


async def test_a_namespace_that_is_being_deleted_is_reported_once_and_without_a_warning(
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
        cache.unreadable,
        cache.pods._pods._owner_of,
        cache.pods._pods._shared,
        cache.children._children._owner_of,
    ]
    kept += [operator.runner._obstacles, operator.runner._faults, operator.runner.undone]
    kept += [reconciler._jobs._jobs, reconciler._unreadable._reported]
    kept += [operator.informers.changes._next_reconcile, operator.worker._deferred]
    assert [len(each) for each in kept] == [0] * len(kept), kept
