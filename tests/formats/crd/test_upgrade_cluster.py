"""tfyard's CRD replaces that of another operator on a real apiserver that has jobs."""

import pytest

from tests.formats.serving import ALPHA1, EVERYTHING, LIST_STATUS, lost
from tests.formats.test_validation import container, replica, tfjob
from tfyard import kube
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.kube import Client, Resource, requests
from tfyard.model import Manifest
from tfyard.testing import ControlPlane, builders, eventually
from tfyard.views.tfjob_status import dump_status, load_status

pytestmark = pytest.mark.cluster

OLD_GROUP = "old.example.org"
OLD = Resource(OLD_GROUP, "v1", "tfjobs")


def minimal() -> Manifest:
    """The CRD of tf-operator 1.0: hardly any schema, all fields kept. It has another group, because other tests
    use the real one."""
    root = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"tfjobs.{OLD_GROUP}"},
        "spec": {
            "group": OLD_GROUP,
            "scope": "Namespaced",
            "names": {"plural": "tfjobs", "singular": "tfjob", "kind": "TFJob", "listKind": "TFJobList"},
            "versions": [{**version, "schema": {"openAPIV3Schema": root}}],
        },
    }


def ours() -> Manifest:
    kubeflow, _ = crds(VERSIONS)
    spec = {**kubeflow["spec"], "group": OLD_GROUP}
    return {**kubeflow, "metadata": {"name": f"tfjobs.{OLD_GROUP}"}, "spec": spec}


LONG = "x" * 60
OLD_JOBS = {
    "plain": tfjob()["spec"],
    "list": ALPHA1["spec"],
    LONG: tfjob({"Worker": replica(container(resources={"limits": {"cpu": 0.5}}, command=None))})["spec"],
    "huge": tfjob({"Worker": replica(replicas=9000)})["spec"],
    "wrong": tfjob({"Boss": replica({"name": "main"})}, unknown=1)["spec"],
}
OLD_STATUS = {"conditions": None, "replicaStatuses": {"Worker": {"active": 1}}, "startTime": None}


async def test_jobs_of_another_operators_crd_stay_and_can_be_finished(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await builders.install_crds(client, minimal())
        for name, spec in OLD_JOBS.items():
            await _make_old(client, namespace, name, spec)
        await builders.install_crds(client, ours())
        await eventually(lambda: _prunes(client, namespace))
        for name, spec in OLD_JOBS.items():
            await _finish(client, namespace, name)
            read = await client.send(requests.get(OLD.path(namespace, name)))
            known = {key: value for key, value in spec.items() if key != "unknown"}
            assert list(lost(known, read["spec"])) == []
            assert load_status(read) == EVERYTHING
        await _check_growth(client, namespace, LONG, 0, r"metadata\.name is too long")
        await _check_growth(client, namespace, "huge", 8000, "too many tasks")


async def _make_old(client: Client, namespace: str, name: str, spec: Manifest) -> None:
    body = {"apiVersion": f"{OLD_GROUP}/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}
    made = await client.send(requests.create(OLD.path(namespace), body))
    await client.send(
        requests.replace(
            OLD.path(namespace, name, "status"),
            {**made, "status": LIST_STATUS if name == "list" else OLD_STATUS},
        )
    )


async def _prunes(client: Client, namespace: str) -> None:
    """Fails until the server uses the new schema, which takes a moment."""
    read = await client.send(requests.get(OLD.path(namespace, "wrong")))
    assert "unknown" not in read["spec"]


async def _finish(client: Client, namespace: str, name: str) -> None:
    """Writes the status first: while it is v1alpha1's list, the scale subresource refuses every other change."""
    read = await client.send(requests.get(OLD.path(namespace, name)))
    finished = {**read, "status": dump_status(EVERYTHING)}
    await client.send(requests.replace(OLD.path(namespace, name, "status"), finished))
    await client.send(requests.patch(OLD.path(namespace, name), {"metadata": {"labels": {"seen": "yes"}}}))


async def _check_growth(client: Client, namespace: str, name: str, fewer: int, message: str) -> None:
    """The job cannot have run under tfyard; it may shrink, but not grow."""
    path = OLD.path(namespace, name)
    await client.send(requests.patch(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": fewer}}}}))
    more = requests.patch(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": fewer + 1}}}})
    with pytest.raises(kube.Unprocessable, match=message):
        await client.send(more)
