"""Objects that only claim to be a job's: in another namespace, of another kind of owner, or with another name."""

from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tests.controller.test_gang import BY_VOLCANO, VOLCANO, install
from tfyard.backends.kubernetes.resources import CHILDREN
from tfyard.controller.informers import OURS
from tfyard.kube import Client, Resource, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.model.names import CONTROLLER, JOB_NAME, OPERATOR_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = pytest.mark.cluster

Manifest = dict[str, Any]
KINDS = {**CHILDREN, "PodGroup": VOLCANO}


def forged(manifest: Manifest, job: Manifest, owner: Manifest | None = None) -> Manifest:
    """The object with the labels and the owner of an object of this job; `owner` has what differs."""
    reference = {"apiVersion": job["apiVersion"], "kind": job["kind"], "controller": True}
    reference |= {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"], **(owner or {})}
    labels = {OPERATOR_NAME: CONTROLLER, JOB_NAME: job["metadata"]["name"]}
    meta = manifest["metadata"]
    meta |= {"labels": {**labels, **meta.get("labels", {})}, "ownerReferences": [reference]}
    return manifest


def forged_pod(job: Manifest, name: str = "train-worker-0", owner: Manifest | None = None) -> Manifest:
    index = name.rpartition("-")[2] if name[-1].isdigit() else "0"
    return forged(builders.pod(name, {REPLICA_TYPE: "worker", REPLICA_INDEX: index}), job, owner)


async def create(client: Client, resource: Resource, namespace: str, manifest: Manifest) -> Manifest:
    made: Manifest = await client.send(requests.create(resource.path(namespace), manifest))
    return made


async def uids(client: Client, namespace: str) -> dict[str, str]:
    pods = await client.send(requests.get(requests.PODS.path(namespace)))
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods["items"]}


async def has_seen(scene: Stage, namespace: str) -> None:
    """Waits until the operator has seen what was there: a watch reports changes in their order, so a pod of a new
    job comes after them."""
    await create(scene.client, TFJOBS, namespace, tfjob("probe", Worker=1))

    async def look() -> None:
        job = await scene.client.send(requests.get(TFJOBS.path(namespace, "probe")))
        assert job.get("status", {}).get("replicaStatuses", {}).get("Worker", {}).get("active") == 1, job

    path = requests.PODS.path(namespace, "probe-worker-0", "status")
    running = {"status": {"phase": "Running"}}

    async def start() -> None:
        await scene.client.send(requests.patch(path, running))

    await eventually(start)
    await eventually(look)


ENDS = {
    "Succeeded": {"phase": "Succeeded"},
    "Failed": {"phase": "Failed"},
    "killed": {
        "phase": "Failed",
        "containerStatuses": [
            {
                "name": "tensorflow",
                "ready": False,
                "restartCount": 0,
                "image": "x",
                "imageID": "",
                "state": {"terminated": {"exitCode": 137}},
            }
        ],
    },
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_pod_in_another_namespace_neither_ends_nor_restarts_a_job(
    control_plane: ControlPlane, namespace: str, end: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        other = await builders.create_namespace(scene.client)
        async with operator_with(control_plane.client(), namespace, other):
            job = await scene.submit(tfjob(Worker={"replicas": 1, "restartPolicy": "ExitCode"}))
            await scene.phase("Running")
            before = await uids(scene.client, namespace)
            await create(scene.client, requests.PODS, other, forged_pod(job))
            path = requests.PODS.path(other, "train-worker-0", "status")
            await scene.client.send(requests.patch(path, {"status": ENDS[end]}))
            await has_seen(scene, other)
            status = await scene.status()
            assert (status["phase"], status["replicaStatuses"]["Worker"]["active"]) == ("Running", 1)
            assert status["replicaStatuses"]["Worker"].get("restarts", 0) == 0
            assert await uids(scene.client, namespace) == before
            assert "train-worker-0" in await uids(scene.client, other), "nor is it the job's to delete"


async def test_a_pod_in_another_namespace_is_not_taken_for_one_that_is_missing(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        other = await builders.create_namespace(scene.client)
        async with operator_with(control_plane.client(), namespace, other):
            job = await scene.submit(tfjob(policy={"suspend": True}, Worker=1))
            await scene.phase("Suspended")
            await create(scene.client, requests.PODS, other, forged_pod(job))
            await has_seen(scene, other)
            await scene.patch({"spec": {"runPolicy": {"suspend": False}}})
            await scene.phase("Running")
            await scene.pods({"train-worker-0"})


def old_job() -> Manifest:
    """A job that has every kind of object: its cluster is too large for an environment variable of each pod."""
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "example/train:1"}]}}
    replicas = [{"tfReplicaType": "MASTER", "template": template}]
    replicas += [{"tfReplicaType": "WORKER", "replicas": 150, "template": template}]
    spec = {"replicaSpecs": replicas, "tensorboard": {"logDir": "/logs"}}
    return {
        "apiVersion": "tensorflow.org/v1alpha1",
        "kind": "TfJob",
        "metadata": {"name": "train"},
        "spec": spec,
    }


async def children(client: Client, namespace: str) -> dict[str, list[Manifest]]:
    """The objects of the old job beside its pods, which wait for Volcano, by kind."""
    found = {}
    for kind, resource in KINDS.items():
        found[kind] = (await client.send(requests.get(resource.path(namespace), OURS)))["items"]
    numbers = {kind: len(items) for kind, items in found.items()}
    assert numbers == {"Service": 2, "ConfigMap": 1, "Deployment": 1, "PodGroup": 1}
    return found


def copied(found: Manifest, kind: str) -> Manifest:
    """The object with its name, labels and owner, for another namespace."""
    meta = {key: found["metadata"][key] for key in ("name", "labels", "ownerReferences")}
    spec = {key: value for key, value in found.get("spec", {}).items() if not key.startswith("clusterIP")}
    data = {"data": found["data"]} if "data" in found else {"spec": spec}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": kind} if kind == "PodGroup" else {}
    return {**group, "metadata": meta, **data}


async def test_no_other_object_in_another_namespace_is_taken_for_one_of_the_jobs_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        client = scene.client
        await install(client, VOLCANO.group)
        other = await builders.create_namespace(client)
        settings = {"jobs": [TFJOBS, OLD_TFJOBS], "site": BY_VOLCANO}
        async with operator_with(control_plane.client(), namespace, other, **settings):
            await create(client, OLD_TFJOBS, namespace, old_job())
            own = await eventually(lambda: children(client, namespace))
        for kind, each in ((kind, each) for kind, items in own.items() for each in items):
            resource, name = KINDS[kind], each["metadata"]["name"]
            await create(client, resource, other, copied(each, kind))
            await client.send(requests.delete(resource.path(namespace, name)))
        counting = Counting(control_plane.admin)
        async with operator_with(counting, namespace, other, **settings):
            await eventually(lambda: children(client, namespace))
        await children(client, other)
        assert not [write for write in counting.writes if other in write]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("train-worker-7", {"kind": "PyTorchJob"}),
        ("train-worker-7", {"apiVersion": "example.com/v1"}),
        ("train-worker-7", {"name": "another"}),
        ("something", {}),
    ],
)
async def test_a_pod_of_the_namespace_with_another_name_or_kind_of_owner_is_not_the_jobs_to_delete(
    control_plane: ControlPlane, namespace: str, name: str, owner: dict[str, str]
) -> None:
    async with stage(control_plane, namespace) as scene, operator_with(control_plane.client(), namespace):
        job = await scene.submit(tfjob(Worker=1))
        await scene.phase("Running")
        stranger = await create(scene.client, requests.PODS, namespace, forged_pod(job, name, owner))
        await has_seen(scene, namespace)
        found = await scene.client.send(requests.get(requests.PODS.path(namespace, name)))
        assert found["metadata"]["uid"] == stranger["metadata"]["uid"]
        assert "deletionTimestamp" not in found["metadata"]
        assert (await scene.status())["phase"] == "Running"


async def test_a_pod_beyond_the_replicas_is_still_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The counterpart of the test above: with the job's full reference and the name of a task, it is the job's."""
    async with stage(control_plane, namespace) as scene, operator_with(control_plane.client(), namespace):
        job = await scene.submit(tfjob(Worker=1))
        await scene.phase("Running")
        await create(scene.client, requests.PODS, namespace, forged_pod(job, "train-worker-7"))
        await scene.pods({"train-worker-0"})
