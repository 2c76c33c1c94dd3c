"""tensorflow.org's jobs beside kubeflow.org's: how kubectl finds both, and one name for two of them."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.controller.cluster import bench, tfjob
from tfyard.kube import Resource, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

CONTAINER = {"name": "tensorflow", "image": "example/train:1"}
OLD = {
    "apiVersion": "tensorflow.org/v1alpha1",
    "kind": "TfJob",
    "metadata": {"name": "train"},
    "spec": {"replicaSpecs": [{"template": {"spec": {"containers": [CONTAINER]}}}]},
}
"""A job of 2017 with one MASTER."""


async def test_a_job_of_2017_is_found_by_kubectl_and_waits_for_a_name_that_a_tfjob_has(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        kubectl = partial(asyncio.to_thread, control_plane.kubectl, "-n", namespace)

        async def status(resource: Resource, phase: str) -> dict[str, Any]:
            found = await yard.client.send(requests.get(resource.path(namespace, "train")))
            assert found.get("status", {}).get("phase") == phase, found.get("status")
            return dict(found["status"])

        await yard.submit(tfjob(Worker=1))
        await yard.phase("Running")
        await yard.client.send(requests.create(OLD_TFJOBS.path(namespace), OLD))
        blocked = await eventually(lambda: status(OLD_TFJOBS, "Blocked"))
        assert blocked["conditions"][-1]["reason"] == "NameTaken"
        assert blocked["conditions"][-1]["message"].startswith("tfjobs.kubeflow.org/train has the same name")
        assert await yard.names() == {"train-worker-0"}

        table = await kubectl("get", "training")
        assert "tfjob.kubeflow.org/train" in table
        assert "tfjob.tensorflow.org/train" in table
        assert "Blocked" in await kubectl("get", "oldtfj")
        assert "Running" in await kubectl("get", "tfj")

        await yard.client.send(requests.delete(TFJOBS.path(namespace, "train")))
        await yard.client.send(requests.delete(requests.PODS.path(namespace, "train-worker-0"), grace=0))
        await eventually(lambda: status(OLD_TFJOBS, "Running"))
        assert await yard.names() == {"train-master-0"}
        await yard.submit(tfjob(Worker=1))
        await yard.phase("Blocked")
        await yard.kubelet.finish("train-master-0")
        await eventually(lambda: status(OLD_TFJOBS, "Succeeded"))
        await asyncio.sleep(0.5)
        assert await yard.names() == {"train-master-0"}, "its logs can still be read"
