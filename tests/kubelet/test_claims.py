"""On a node of this machine, scheduled by the real scheduler, pods keep what they write to their claims."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tfyard.controlplane.control_plane import CONTROLLERS
from tfyard.kube import requests
from tfyard.kubelet.claims import Provisioner
from tfyard.kubelet.kubelet import Kubelet
from tfyard.kubelet.nodes import MachineFacts, MachineNode
from tfyard.kubelet.processes import ProcessNodeOptions, ProcessRuntime
from tfyard.kubelet.sources import CLAIMS
from tfyard.node.memory import capacity
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.processes]


LONG = ".".join(["long"] * 50)


def claim(name: str, **spec: Any) -> dict[str, Any]:
    storage = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**storage, **spec}}


def trainer(**mount: Any) -> dict[str, Any]:
    mounts = [{"name": "share", "mountPath": "/model", **mount}]
    container = {
        "name": "main",
        "image": "none",
        "command": ["/bin/sh", "-c", "echo trained > /model/weights"],
        "volumeMounts": mounts,
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    volumes = [{"name": "share", "persistentVolumeClaim": {"claimName": "azure"}}]
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    return {"metadata": {"name": "train"}, "spec": spec}


@pytest.fixture
def controllers() -> Iterator[ControlPlane]:
    """Of a cluster of its own: claims of every namespace are served, and other tests leave some behind."""
    with ControlPlane(controllers=CONTROLLERS) as plane:
        yield plane


async def test_a_claim_of_any_class_is_bound_filled_and_removed(
    controllers: ControlPlane, tmp_path: Path
) -> None:
    async with controllers.client() as client:
        namespace = await builders.create_namespace(client)
    machine = MachineFacts(
        name=f"{namespace}-machine",
        address="127.0.0.1",
        port=10250,
        version="v1.36.0",
        capacity=capacity(tmp_path, {"nvidia.com/gpu": "4"}),
    )
    claims = tmp_path / "claims"
    async with (
        controllers.client() as client,
        ProcessRuntime(
            client, tmp_path, dict(os.environ), options=ProcessNodeOptions(node=machine.name)
        ) as runtime,
        Provisioner(client, claims),
        Kubelet(client, runtime, MachineNode(client, machine), namespace),
    ):
        await client.send(
            requests.create(CLAIMS.path(namespace), claim("azure", storageClassName="azurefile"))
        )
        for each in (claim(LONG), claim("device", volumeMode="Block"), claim("plain")):
            await client.send(requests.create(CLAIMS.path(namespace), each))
        await client.send(requests.create(requests.PODS.path(namespace), trainer(subPath="exercise-2")))

        async def look() -> None:
            pod = await client.send(requests.get(requests.PODS.path(namespace, "train")))
            assert pod["status"]["phase"] == "Succeeded", pod["status"]

        await eventually(look, 60)
        [directory] = claims.glob(f"{namespace}_azure_*")
        assert (directory / "exercise-2" / "weights").read_text() == "trained\n"

        async def told() -> None:
            bound = controllers.kubectl("-n", namespace, "get", "pvc")
            assert bound.count(" Bound ") == 3
            described = controllers.kubectl("-n", namespace, "describe", "pvc", "device")
            assert "no block devices" in described

        await eventually(told)
        node = controllers.kubectl("describe", "node", machine.name)
        assert "KubeletHasSufficientMemory" in node
        assert re.search(r"nvidia.com/gpu: +4", node)
        controllers.kubectl("-n", namespace, "delete", "pod/train", "pvc/azure")

        async def look_again() -> None:
            assert not directory.exists()

        await eventually(look_again)
        controllers.kubectl("delete", "node", machine.name, "--wait=false")
        controllers.kubectl("delete", "storageclass", "tfyard-local")
