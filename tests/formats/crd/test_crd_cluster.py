"""The CRDs on a real apiserver: the fields that it keeps, its defaults, and the output of kubectl."""

import json
from typing import Any

import pytest

from tests.formats.samples import MANIFESTS, SEEDS, document
from tests.formats.serving import (
    EVERYTHING,
    FLAT,
    FULL,
    KUBEFLOW,
    LIST_STATUS,
    OTHERS,
    V1,
    create,
    essence,
    lost,
    resource,
    written,
)
from tests.formats.test_validation import container, old, replica, tfjob
from tfyard import formats
from tfyard.controlplane.process import ProcessFailed
from tfyard.formats.crd.documents import crds
from tfyard.formats.crd.status import missing_memory
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.kube import Patch, Request, Resource, requests
from tfyard.model import Manifest, RoleStatus, Status
from tfyard.testing import ControlPlane
from tfyard.views.tfjob_status import dump_status, load_status

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crds")]

# --- every field of every version

EXAMPLES = [document(path).data for path in (*MANIFESTS, *SEEDS)]
NAMES = [*("full" for _ in FULL), *(path.stem for path in (*MANIFESTS, *SEEDS))]
IDS = [f"{name}-{body['apiVersion']}" for name, body in zip(NAMES, [*FULL, *EXAMPLES], strict=True)]


@pytest.mark.parametrize("body", [*FULL, *EXAMPLES], ids=IDS)
async def test_what_is_created_as_one_version_is_read_as_every_other(
    control_plane: ControlPlane, namespace: str, body: Manifest
) -> None:
    group, _, version = body["apiVersion"].partition("/")
    async with control_plane.client() as client:
        made = await create(client, namespace, body)
        for other in KUBEFLOW if group == "kubeflow.org" else ("v1alpha1",):
            path = Resource(group, other, "tfjobs").path(namespace, made["metadata"]["name"])
            read = await client.send(requests.get(path))
            assert read["apiVersion"] == f"{group}/{other}"
            assert list(lost(body["spec"], read["spec"])) == []
            if other in ("v1", version):
                assert essence(formats.load(read)) == essence(formats.load(body))


@pytest.mark.parametrize("version", KUBEFLOW[1:-1])
async def test_changing_a_job_through_an_older_version_loses_nothing(
    control_plane: ControlPlane, namespace: str, version: str
) -> None:
    body = written("v1", **OTHERS, runPolicy={**FLAT, "cleanPodPolicy": "Running"})
    async with control_plane.client() as client:
        await create(client, namespace, body)
        path = Resource("kubeflow.org", version, "tfjobs").path(namespace, "mnist")
        await client.send(requests.patch(path, {"metadata": {"labels": {"a": "b"}}}))
        read = await client.send(requests.get(V1.path(namespace, "mnist")))
    assert list(lost(body["spec"], read["spec"])) == []
    assert read["metadata"]["labels"] == {"a": "b"}


DEFAULTS: dict[str, Manifest] = {
    "kubeflow.org/v1": {},
    "kubeflow.org/v1beta2": {"cleanPodPolicy": "Running", "dialect": "tf1"},
    "kubeflow.org/v1beta1": {"cleanPodPolicy": "Running", "dialect": "tf1"},
    "kubeflow.org/v1alpha2": {"cleanPodPolicy": "Running", "dialect": "tf1"},
    "kubeflow.org/v1alpha1": {"cleanupPodPolicy": "All", "dialect": "tf1"},
    "tensorflow.org/v1alpha1": {"cleanupPodPolicy": "None", "dialect": "tf1"},
}


@pytest.mark.parametrize(("version", "expected"), DEFAULTS.items())
async def test_each_version_stores_its_own_defaults(
    control_plane: ControlPlane, namespace: str, version: str, expected: Manifest
) -> None:
    is_list = version.endswith("v1alpha1")
    body = {**(old(replica()) if is_list else tfjob()), "apiVersion": version}
    body["kind"] = "TfJob" if version.startswith("tensorflow") else "TFJob"
    async with control_plane.client() as client:
        made = await create(client, namespace, body)
    roles = ("replicaSpecs", "tfReplicaSpecs")
    assert {key: value for key, value in made["spec"].items() if key not in roles} == expected


async def test_the_server_says_that_a_version_is_old(control_plane: ControlPlane, namespace: str) -> None:
    body = json.dumps({**tfjob(), "apiVersion": "kubeflow.org/v1beta1"})
    with pytest.raises(ProcessFailed, match="tfyard convert"):
        control_plane.kubectl("create", "-n", namespace, "--warnings-as-errors", "-f", "-", stdin=body)


BLANK: Any = {
    "metadata": {"creationTimestamp": None, "labels": None},
    "spec": {
        "volumes": None,
        "initContainers": None,
        "affinity": None,
        "containers": [container(resources=None, volumeMounts=None, args=None, ports=[{"containerPort": 1}])],
    },
}


@pytest.mark.parametrize("version", KUBEFLOW[:-1])
async def test_blank_fields_are_no_problem(control_plane: ControlPlane, namespace: str, version: str) -> None:
    body = {**tfjob({"Worker": {"template": BLANK}}), "apiVersion": f"kubeflow.org/{version}"}
    async with control_plane.client() as client:
        await create(client, namespace, body)
        read = await client.send(requests.get(V1.path(namespace, "mnist")))
    assert formats.check(read).problems == ()


# --- the status


async def test_the_server_keeps_every_field_of_the_status(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await create(client, namespace, tfjob())
        await create(client, namespace, old(replica()))
        for kind in (V1, resource("tensorflow.org/v1alpha1")):
            body = {"status": dump_status(EVERYTHING)}
            await client.send(requests.patch(kind.path(namespace, "mnist", "status"), body))
            read = await client.send(requests.get(kind.path(namespace, "mnist")))
            assert load_status(read) == EVERYTHING


async def test_what_other_operators_wrote_into_a_status_stays(
    control_plane: ControlPlane, namespace: str
) -> None:
    theirs = {
        "conditions": [{"type": "Created", "status": "True", "lastUpdateTime": None}],
        "replicaStatuses": {"PS": {}, "Worker": {"active": 1, "labelSelector": {"matchLabels": {"a": "b"}}}},
        "tfReplicaStatuses": {"Worker": {"active": 1}},
        "lastReconcileTime": "2020-01-01T00:00:00Z",
        "completionTime": None,
    }
    async with control_plane.client() as client:
        made = await create(client, namespace, tfjob())
        path = V1.path(namespace, "mnist", "status")
        read = await client.send(requests.replace(path, {**made, "status": theirs}))
    assert list(lost(theirs, read["status"])) == []


async def test_v1alpha1s_list_of_statuses_stays_until_tfyard_writes_a_status(
    control_plane: ControlPlane, namespace: str
) -> None:
    path = resource("tensorflow.org/v1alpha1").path(namespace, "mnist")
    async with control_plane.client() as client:
        made = await create(client, namespace, old(replica()))
        await client.send(requests.replace(f"{path}/status", {**made, "status": LIST_STATUS}))
        read = await client.send(requests.patch(path, {"metadata": {"labels": {"a": "b"}}}))
        assert read["status"] == {**LIST_STATUS, "restarts": 0}
        ours = {**read, "status": dump_status(EVERYTHING)}
        assert load_status(await client.send(requests.replace(f"{path}/status", ours))) == EVERYTHING


async def test_the_server_returns_crds_that_drop_no_field_of_the_status(control_plane: ControlPlane) -> None:
    async with control_plane.client() as client:
        for definition in crds(VERSIONS):
            path = requests.CRDS.path(name=definition["metadata"]["name"])
            served = await client.send(requests.get(path))
            assert missing_memory(served) == []
            conditions = {c["type"]: c["status"] for c in served["status"]["conditions"]}
            assert conditions == {"NamesAccepted": "True", "Established": "True"}


# --- managedFields, which the server reads and writes with every change of a job


def apply(path: str, manager: str, spec: Manifest) -> Request:
    body = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"}, "spec": spec}
    return requests.patch(path, body, Patch.APPLY, {"fieldManager": manager})


async def test_a_status_and_a_container_are_one_entry_each_in_managed_fields(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        made = await create(client, namespace, tfjob())
        status = {**made, "status": dump_status(EVERYTHING)}
        read = await client.send(requests.replace(V1.path(namespace, "mnist", "status"), status))
    notes = json.dumps([entry["fieldsV1"] for entry in read["metadata"]["managedFields"]])
    assert '"f:status": {}' in notes
    assert """"k:{\\"name\\":\\"tensorflow\\"}": {}""" in notes


async def test_other_clients_may_add_to_a_pod_template_that_they_do_not_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Queues and injectors do this: they add a node selector, or a container of their own."""
    side = {"name": "side", "image": "example/b:1"}
    theirs = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}, "containers": [side]}}}
    path = V1.path(namespace, "mnist")
    async with control_plane.client() as client:
        await client.send(apply(path, "user", tfjob()["spec"]))
        await client.send(apply(path, "queue", {"tfReplicaSpecs": {"Worker": theirs}}))
        read = await client.send(apply(path, "user", tfjob({"Worker": replica(replicas=3)})["spec"]))
    worker = read["spec"]["tfReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 3
    assert worker["template"]["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert [container["name"] for container in worker["template"]["spec"]["containers"]] == [
        "tensorflow",
        "side",
    ]


# --- kubectl


def test_kubectl_explains_the_job_down_into_the_pod(control_plane: ControlPlane) -> None:
    explained = control_plane.kubectl("explain", "tfjob.spec.tfReplicaSpecs.template.spec.containers.image")
    assert "Container image name" in explained
    assert "Number of restarts of any kind" in control_plane.kubectl("explain", "tfjob.spec.runPolicy")
    assert "after their pods are deleted" in control_plane.kubectl("explain", "tfj.status.tasks")


async def test_kubectl_shows_a_job_in_one_line(control_plane: ControlPlane, namespace: str) -> None:
    roles = {
        "Master": RoleStatus(ready="1/1"),
        "Worker": RoleStatus(active=3, ready="3/4"),
        "PS": RoleStatus(ready="2/2"),
    }
    status = Status(phase="Running", replica_statuses=roles)
    async with control_plane.client() as client:
        await create(client, namespace, tfjob())
        body = {"status": dump_status(status)}
        await client.send(requests.patch(V1.path(namespace, "mnist", "status"), body))
    head, line = control_plane.kubectl("get", "tfjob", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE"]
    assert line.split()[:-1] == ["mnist", "Running", "1/1", "3/4", "2/2", "0"]
    assert "mnist" in control_plane.kubectl("get", "ml", "-n", namespace)
    assert "MESSAGE" in control_plane.kubectl("get", "tfj", "-n", namespace, "-o", "wide")


async def test_kubectl_scales_the_workers(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as client:
        await create(client, namespace, tfjob())
        body = {"status": dump_status(EVERYTHING)}
        await client.send(requests.patch(V1.path(namespace, "mnist", "status"), body))
        control_plane.kubectl("scale", "tfjob/mnist", "--replicas=5", "-n", namespace)
        read = await client.send(requests.get(V1.path(namespace, "mnist")))
        scale = await client.send(requests.get(V1.path(namespace, "mnist", "scale")))
    assert read["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 5
    assert (scale["status"]["replicas"], scale["status"]["selector"]) == (2, "a=b")


def test_kubectl_apply_changes_a_job_of_an_old_version_without_a_conflict(
    control_plane: ControlPlane, namespace: str
) -> None:
    for how in ([], ["--server-side", "--force-conflicts"]):
        for replicas in (1, 2):
            body = tfjob({"Worker": replica(replicas=replicas)})
            text = json.dumps({**body, "apiVersion": "kubeflow.org/v1beta1"})
            control_plane.kubectl("apply", *how, "-n", namespace, "-f", "-", stdin=text)
    read = json.loads(control_plane.kubectl("get", "tfjob", "mnist", "-n", namespace, "-o", "json"))
    assert read["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 2
    assert read["spec"]["dialect"] == "tf1"
