"""Kubernetes' own gang scheduling, by its real apiserver, scheduler and controllers with the gates turned on."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controller.cluster import Bench, bench, tfjob
from tests.controller.test_writes import settled_writes, writes
from tfyard import formats, planner
from tfyard.controller import gang_schedulers
from tfyard.kube import Resource, requests
from tfyard.model import Create, Observed
from tfyard.planner import Gang, Site
from tfyard.testing import CONTROLLERS, ControlPlane, Script, builders, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.since(36, "PodGroups of its own")]

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
FLAGS = {
    "kube-apiserver": [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
    "kube-controller-manager": [GATES],
    "kube-scheduler": [GATES],
}
GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups")
SITE = Site(gang=Gang(by="core"))
LARGE = {"resources": {"requests": {"cpu": "600"}}}
"""More than half of a node of the test cluster: two of them need two nodes."""


@pytest.fixture(scope="module")
def plane(_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane of its own, with the same binaries: feature gates hold for a whole server."""
    binaries = _control_plane.binaries.folder
    with ControlPlane(binaries=binaries, controllers=CONTROLLERS, flags=FLAGS) as running:
        yield running


@pytest.fixture
def place(plane: ControlPlane) -> str:
    async def make() -> str:
        async with plane.client() as client:
            return await builders.create_namespace(client)

    return asyncio.run(make())


def gang_of(size: int, **policy: Any) -> dict[str, Any]:
    container = {"name": "tensorflow", "image": "example/train:1", **LARGE}
    template = {"spec": {"containers": [container]}}
    made = tfjob(policy={"schedulingPolicy": {}, **policy}, Worker={"replicas": size, "template": template})
    return {**made, "spec": {**made["spec"], "successPolicy": "AllWorkers"}}


async def groups(yard: Bench) -> list[dict[str, Any]]:
    found = await yard.client.send(requests.get(GROUPS.path(yard.namespace)))
    return list(found["items"])


async def bound(yard: Bench) -> set[str]:
    found = await yard.client.send(requests.get(requests.PODS.path(yard.namespace)))
    return {pod["metadata"]["name"] for pod in found["items"] if pod["spec"].get("nodeName")}


async def test_the_server_accepts_every_created_object_strictly_and_drops_nothing_of_it(
    plane: ControlPlane, place: str
) -> None:
    job = formats.load({**gang_of(2), "metadata": {"name": "train", "namespace": place, "uid": "u"}})
    decision = planner.decide(job, Observed(), SITE, datetime.now(UTC))
    strictly = {"fieldValidation": "Strict", "dryRun": "All"}
    resources = {"PodGroup": GROUPS, "Pod": requests.PODS, "Service": requests.SERVICES}
    async with plane.client() as client:
        for action in decision.actions:
            assert isinstance(action, Create)
            path = resources[action.kind].path(place)
            answer = await client.send(requests.create(path, action.manifest, strictly))
            for name, value in action.manifest["spec"].items():
                if name in ("schedulingPolicy", "schedulingGroup"):
                    assert answer["spec"][name] == value, "nothing of it was dropped"


async def test_all_pods_start_or_none_and_the_group_goes_with_the_end(
    plane: ControlPlane, place: str
) -> None:
    async with bench(plane, place, Script(), site=SITE, schedules=True) as yard:
        await yard.submit(gang_of(2))

        async def is_judged() -> None:
            found = [group.get("status") or {} for group in await groups(yard)]
            told = {(c["type"], c["reason"]) for status in found for c in status.get("conditions", ())}
            assert told == {("PodGroupScheduled", "Unschedulable")}

        await eventually(is_judged)
        assert await yard.names() == {"train-worker-0", "train-worker-1"}
        assert await bound(yard) == set(), "one would have fitted"

        yard.kubelet.nodes.names.append(f"{place}-node-1")
        await yard.kubelet.nodes.register()
        assert (await yard.phase("Running", timeout=60))["cluster"]["gang"] == "core"
        assert await bound(yard) == {"train-worker-0", "train-worker-1"}

        assert yard.operator is not None
        cost = await settled_writes(yard.operator)
        assert cost["create podgroups"] == 1
        yard.operator.enqueue_all()
        await asyncio.sleep(1)
        assert writes(yard.operator) == cost, "none while nothing happens"

        await yard.kubelet.finish("train-worker-0")
        await yard.kubelet.evict("train-worker-1")

        async def is_replaced() -> None:
            """By one that goes alone: the scheduler does not count who has finished, and would wait for ever."""
            status = await yard.status()
            remembered = status.get("tasks", {}).get("Worker", {})
            assert remembered == {"attempts": {"1": 1}, "finished": "0"}
            assert status["replicaStatuses"]["Worker"]["ready"] == "2/2"

        await eventually(is_replaced, 60)
        await yard.kubelet.finish("train-worker-1")
        await yard.phase("Succeeded")

        async def is_gone() -> None:
            assert await groups(yard) == []

        await eventually(is_gone)
        assert writes(yard.operator)["delete podgroups"] == 1


async def test_a_group_rests_with_its_job_and_one_deleted_by_hand_is_made_again(
    plane: ControlPlane, place: str
) -> None:
    async with bench(plane, place, Script(), site=SITE) as yard:
        await yard.submit(tfjob(Worker=2))
        await yard.phase("Running")
        (first,) = await groups(yard)
        await yard.patch({"spec": {"runPolicy": {"suspend": True}}})
        await yard.phase("Suspended")

        async def is_gone() -> None:
            assert await groups(yard) == []

        await eventually(is_gone)
        await yard.patch({"spec": {"runPolicy": {"suspend": False}}})
        await yard.phase("Running")
        (second,) = await groups(yard)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]

        await yard.client.send(requests.delete(GROUPS.path(place, "train")))  # held until nobody uses it
        for name in ("train-worker-0", "train-worker-1"):
            await yard.kubelet.evict(name)

        async def is_new() -> None:
            found = [group["metadata"] for group in await groups(yard)]
            assert found
            assert found[0]["uid"] != second["metadata"]["uid"]

        await eventually(is_new)
        await yard.phase("Running")


async def test_auto_prefers_the_clusters_own_and_a_missing_one_is_named(plane: ControlPlane) -> None:
    async with plane.client() as client:
        assert await gang_schedulers.find(client, "auto") == Gang(by="core", every=False)
        assert await gang_schedulers.find(client, "core") == Gang(by="core")
        with pytest.raises(
            gang_schedulers.NotServed, match=r"podgroups of scheduling.volcano.sh/v1beta1; install Volcano"
        ):
            await gang_schedulers.find(client, "volcano")
