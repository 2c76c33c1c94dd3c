"""A node of real processes whose pods can be reached by exec, with claims that are folders of this machine."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kubelet.process_node import prepare
from tfyard.kube import Client, Patch, Resource, requests
from tfyard.kubelet.kubelet import Kubelet
from tfyard.kubelet.nodes import Machine, MachineNode, capacity
from tfyard.kubelet.processes import ProcessRuntime
from tfyard.kubelet.server import KubeletServer, server_tls
from tfyard.kubelet.surroundings import Options
from tfyard.kubelet.volumes import CLAIMS, VOLUMES
from tfyard.model.names import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.remote.addresses import TFJOBS
from tfyard.remote.helper_pods import LABEL
from tfyard.remote.jobs import Found
from tfyard.testing import ControlPlane, eventually

ADDRESS = "127.0.0.1"


class CopyNode:
    def __init__(self, client: Client, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self._folder = client, namespace, folder

    async def claim(self, name: str = "out", modes: tuple[str, ...] = ("ReadWriteMany",)) -> Path:
        """Bound, as the controllers would; its folder."""
        directory = self._folder / "claims" / name
        directory.mkdir(parents=True)
        size, volume = {"storage": "1Gi"}, f"{self.namespace}-{name}"
        spec = {"capacity": size, "accessModes": [*modes], "hostPath": {"path": str(directory)}}
        await self._create(VOLUMES, {"metadata": {"name": volume}, "spec": spec}, namespace="")
        spec = {"accessModes": [*modes], "resources": {"requests": size}, "volumeName": volume}
        await self._create(CLAIMS, {"metadata": {"name": name}, "spec": {**spec, "storageClassName": ""}})
        path = CLAIMS.path(self.namespace, name, "status")
        await self.client.send(requests.patch(path, {"status": {"phase": "Bound"}}, Patch.MERGE))
        return directory

    async def job(self, name: str = "mnist", claim: str = "out") -> Found:
        """With one worker, which has the claim at /out."""
        replicas = {"replicas": 1, "template": {"spec": self._pod_spec(claim)}}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}}
        return Found(
            TFJOBS, await self._create(TFJOBS, {**job, "spec": {"tfReplicaSpecs": {"Worker": replicas}}})
        )

    async def start_worker(self, found: Found, claim: str = "out") -> None:
        """The pod that the operator would create."""
        labels = {JOB_NAME: found.name, REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
        metadata = {"name": f"{found.name}-worker-0", "labels": labels}
        await self._create(requests.PODS, {"metadata": metadata, "spec": self._pod_spec(claim)})

        async def look() -> None:
            pod = await self.client.send(requests.get(requests.PODS.path(self.namespace, metadata["name"])))
            assert pod["status"]["phase"] == "Running", pod["status"]

        await eventually(look)

    async def helpers(self) -> list[Any]:
        pods = await self.client.send(
            requests.get(requests.PODS.path(self.namespace), {"labelSelector": LABEL})
        )
        return list(pods["items"])

    async def first_helper(self) -> Any:
        """Once there is one."""
        while not (found := await self.helpers()):
            await asyncio.sleep(0.02)
        return found[0]

    async def until_helper_runs(self) -> None:
        async def look() -> None:
            assert [each["status"]["phase"] for each in await self.helpers()] == ["Running"]

        await eventually(look)

    async def until_no_helper(self) -> None:
        async def look() -> None:
            assert await self.helpers() == []

        await eventually(look)

    async def restrict(self) -> None:
        """PodSecurity `restricted`."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        path = requests.NAMESPACES.path(name=self.namespace)
        await self.client.send(requests.patch(path, {"metadata": {"labels": labels}}))

    async def _create(self, resource: Resource, body: dict[str, Any], namespace: str | None = None) -> Any:
        path = resource.path(self.namespace if namespace is None else namespace)
        return await self.client.send(requests.create(path, body))

    def _pod_spec(self, claim: str) -> dict[str, Any]:
        container = {
            "name": "tensorflow",
            "image": "none",
            "command": ["sleep", "600"],
            "volumeMounts": [{"name": "out", "mountPath": "/out"}],
        }
        volumes = [{"name": "out", "persistentVolumeClaim": {"claimName": claim}}]
        return {"restartPolicy": "Never", "containers": [container], "volumes": volumes}


@asynccontextmanager
async def copy_node(plane: ControlPlane, namespace: str, folder: Path) -> AsyncIterator[CopyNode]:
    name = f"node-{namespace}"
    pair = plane.kubelet_certificate(name, ADDRESS)
    certificate, key = folder / "kubelet.crt", folder / "kubelet.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls = server_tls(certificate, key, plane.folder / "ca.crt")
    options = Options(node=name, api=plane.endpoint)
    async with plane.client() as client:
        await prepare(client, namespace)
        async with (
            ProcessRuntime(client, folder / "node", dict(os.environ), options=options) as runtime,
            KubeletServer(runtime, tls, ADDRESS) as server,
        ):
            machine = Machine(
                name=name, address=ADDRESS, port=server.port, version="v1.36.0", capacity=capacity(folder)
            )
            node = MachineNode(client, machine)
            async with Kubelet(client, runtime, node, namespace, schedule=True):
                yield CopyNode(client, namespace, folder)
