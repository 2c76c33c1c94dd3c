"""Names that are taken, permissions and quotas that are missing, predecessors that linger."""

import asyncio
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tests.remote.asking import ask
from tfyard.backends.kubernetes.resources import CHILDREN
from tfyard.controller.operator import Operator
from tfyard.kube import Client, Resource, requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, builders, eventually

pytestmark = pytest.mark.cluster

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings")
QUOTAS = Resource("", "v1", "resourcequotas")


async def blocked(
    scene: Stage, reason: str, holds: str = "True", timeout: float = 60.0, name: str = "train"
) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        status = await scene.status(name)
        found = [c for c in status.get("conditions", []) if c["type"] == "Blocked"]
        assert [(c["status"], c["reason"]) for c in found] == [(holds, reason)], status
        return dict(found[0])

    return await eventually(look, timeout)


async def requests_while_blocked(client: Counting, seconds: float = 4.0) -> int:
    before = len(client.sent)
    await asyncio.sleep(seconds)
    return len(client.sent) - before


CALM = 16
"""Requests in the four seconds above: a few rounds of ever longer pauses, and not a hot loop's hundreds."""
SOON = 2.5
"""Less than the pause that a job has reached by then."""


async def test_a_foreign_pod_with_the_name_of_a_task_is_left_alone_and_reported_until_it_is_gone(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        stranger = builders.pod("train-worker-0")
        made = await scene.client.send(requests.create(requests.PODS.path(namespace), stranger))
        await scene.submit(tfjob(Worker=1))
        condition = await blocked(scene, "NameTaken")
        assert "train-worker-0" in condition["message"]
        assert await requests_while_blocked(client) < CALM
        path = requests.PODS.path(namespace, "train-worker-0")
        assert (await scene.client.send(requests.get(path)))["metadata"]["uid"] == made["metadata"]["uid"]
        await scene.client.send(requests.delete(path, grace=0))
        await scene.phase("Running")
        await blocked(scene, "Unblocked", "False")


async def test_a_pod_of_another_controller_with_the_name_of_a_task_is_foreign_too(
    control_plane: ControlPlane, namespace: str
) -> None:
    """As the first pod of a StatefulSet called train-worker."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "train-worker", "controller": True}
    stranger = builders.pod("train-worker-0")
    stranger["metadata"]["ownerReferences"] = [{**owner, "uid": "11111111-2222-3333-4444-555555555555"}]
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace),
    ):
        await scene.client.send(requests.create(requests.PODS.path(namespace), stranger))
        await scene.submit(tfjob(Worker=1))
        await blocked(scene, "NameTaken")


@pytest.mark.long
async def test_a_foreign_service_with_the_name_of_the_job_is_left_alone_and_reported_until_it_is_gone(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = Counting(control_plane.admin)
    stranger = {"metadata": {"name": "train"}, "spec": {"ports": [{"port": 80}]}}
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        await scene.client.send(requests.create(requests.SERVICES.path(namespace), stranger))
        await scene.submit(tfjob(Worker=2))
        condition = await blocked(scene, "NameTaken")
        assert "service train" in condition["message"]
        assert await requests_while_blocked(client) < CALM
        await scene.client.send(requests.delete(requests.SERVICES.path(namespace, "train")))
        await eventually(lambda: has_headless_service(scene))
        await blocked(scene, "Unblocked", "False", timeout=SOON)
        assert scene.chronicle.twice == []


async def has_headless_service(scene: Stage) -> None:
    found = await scene.client.send(requests.get(requests.SERVICES.path(scene.namespace, "train")))
    assert found["spec"]["clusterIP"] == "None"


@pytest.mark.long
async def test_a_successor_of_the_same_name_waits_for_the_old_pods_and_then_has_its_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Nobody collects the old pods here: so they stay until we say."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=2))
        await scene.phase("Running")
        await scene.client.send(requests.delete(TFJOBS.path(namespace, "train")))
        successor = await scene.submit(tfjob(Worker=2))
        await blocked(scene, "NameNotYetFree")
        assert await requests_while_blocked(client) < 2 * CALM + 8
        for name in ("train-worker-0", "train-worker-1"):
            await scene.client.send(requests.delete(requests.PODS.path(namespace, name), grace=0))
        await scene.client.send(requests.delete(requests.SERVICES.path(namespace, "train")))
        await scene.phase("Running")
        await check_owner(scene, successor["metadata"]["uid"])


async def stop_retrying(operator: Operator) -> None:
    """From now on only a change wakes its jobs, as if their back-off had reached its longest pause."""

    async def forget() -> None:
        assert operator.queue._timers, "not in the middle of a pass, after which it would be retried"
        for key in operator.cache.jobs:
            operator.queue.forget(key)

    await eventually(forget)


async def test_a_successor_is_woken_when_the_last_of_the_old_names_is_free(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(control_plane.client(), namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=2))
        await scene.phase("Running")
        await scene.client.send(requests.delete(TFJOBS.path(namespace, "train")))
        successor = await scene.submit(tfjob(Worker=2))
        await blocked(scene, "NameNotYetFree")
        await stop_retrying(operator)
        await scene.client.send(requests.delete(requests.SERVICES.path(namespace, "train")))
        for name in ("train-worker-0", "train-worker-1"):
            await scene.client.send(requests.delete(requests.PODS.path(namespace, name)))
        await scene.phase("Running")
        await check_owner(scene, successor["metadata"]["uid"])


async def test_no_task_of_a_successor_starts_while_one_of_the_old_job_still_has_its_name(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A worker would find the old parameter server under the address of its own."""
    async with stage(control_plane, namespace) as scene, operator_with(control_plane.client(), namespace):
        await scene.submit(tfjob(Worker=1, PS=1))
        await scene.phase("Running")
        await scene.client.send(requests.delete(TFJOBS.path(namespace, "train")))
        await scene.client.send(requests.delete(requests.SERVICES.path(namespace, "train")))
        await scene.client.send(requests.delete(requests.PODS.path(namespace, "train-worker-0"), grace=0))
        await scene.pods({"train-ps-0"})
        successor = await scene.submit(tfjob(Worker=1, PS=1))
        condition = await blocked(scene, "NameNotYetFree")
        assert condition["message"] == "pod train-ps-0 is still being deleted"
        assert await scene.names() == {"train-ps-0"}
        assert await scene.names(requests.SERVICES) == set()
        await scene.client.send(requests.delete(requests.PODS.path(namespace, "train-ps-0"), grace=0))
        await scene.phase("Running")
        await check_owner(scene, successor["metadata"]["uid"])


async def check_owner(scene: Stage, uid: str) -> None:
    found = await scene.client.send(requests.get(requests.PODS.path(scene.namespace)))
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in found["items"]} == {uid}


@pytest.mark.long  # the garbage collector takes most of a minute
async def test_a_successor_gets_its_names_from_the_garbage_collector(
    controllers: ControlPlane, namespace: str
) -> None:
    async with (
        stage(controllers, namespace) as scene,
        operator_with(Counting(controllers.admin), namespace),
    ):
        await scene.submit(tfjob(Worker=2, PS=1))
        await scene.phase("Running")
        await scene.client.send(requests.delete(TFJOBS.path(namespace, "train"), propagation="Background"))
        successor = await scene.submit(tfjob(Worker=2, PS=1))

        async def replaced() -> None:
            assert len(await scene.names()) == 3
            await check_owner(scene, successor["metadata"]["uid"])

        await eventually(replaced, 90)
        await scene.phase("Running", timeout=60)


async def permit(client: Client, namespace: str, user: str, *, pods: list[str]) -> None:
    rules = [
        {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs", "tfjobs/status"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["services", "configmaps", "events"], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": pods},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": user}}
    await client.send(requests.apply(ROLES.path(namespace, user), {**role, "rules": rules}))
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    await client.send(requests.apply(ROLE_BINDINGS.path(namespace, user), binding))


async def test_a_missing_permission_is_reported_and_waited_for(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = f"operator-{namespace}"
    client = Counting(control_plane.access(user))
    async with stage(control_plane, namespace) as scene:
        await permit(scene.client, namespace, user, pods=["get", "list", "watch"])

        async def may_list() -> None:
            async with control_plane.client(control_plane.access(user)) as probe:
                for resource in (TFJOBS, requests.PODS, *CHILDREN.values()):
                    await probe.send(requests.get(resource.path(namespace)))

        await eventually(may_list)
        async with operator_with(client, namespace):
            await scene.submit(tfjob(Worker=2))
            condition = await blocked(scene, "Forbidden")
            assert 'cannot create resource "pods"' in condition["message"]
            told = await asyncio.to_thread(ask, control_plane.admin, namespace, "train")
            assert (told.causes[0].kind, told.causes[0].fix) == ("operator-permission", "tfyard install")
            assert told.sentence == f"the operator ({user}) may not create pods"
            assert await requests_while_blocked(client) < 2 * CALM
            await permit(scene.client, namespace, user, pods=["*"])
            await scene.phase("Running")
            await blocked(scene, "Unblocked", "False")


@pytest.mark.long
async def test_an_exceeded_quota_is_reported_and_waited_for(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The quota's status is written by a controller that does not run here, so it is written by us."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace, Script()) as scene, operator_with(client, namespace):
        hard = {"hard": {"pods": "1"}}
        quota = {"metadata": {"name": "few"}, "spec": hard, "status": {}}
        await scene.client.send(requests.create(QUOTAS.path(namespace), quota))
        counted = {"status": {**hard, "used": {"pods": "0"}}}
        await scene.client.send(requests.patch(QUOTAS.path(namespace, "few", "status"), counted))
        await asyncio.sleep(0.5)
        await scene.submit(tfjob(Worker=3))
        condition = await blocked(scene, "QuotaExceeded")
        assert "exceeded quota: few" in condition["message"]
        assert len(await scene.names()) == 1
        assert await requests_while_blocked(client) < 2 * CALM
        await scene.client.send(requests.delete(QUOTAS.path(namespace, "few")))
        await scene.pods({f"train-worker-{index}" for index in range(3)})
        await blocked(scene, "Unblocked", "False")
        assert scene.chronicle.twice == []
