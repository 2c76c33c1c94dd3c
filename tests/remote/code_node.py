"""A node of real processes that can be reached by exec, with claims that are directories, in one namespace."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.kubelet.process_node import Box, prepare
from tfyard import formats
from tfyard.kube import Access, requests
from tfyard.kubelet.kubelet import Kubelet
from tfyard.kubelet.nodes import MachineFacts, MachineNode
from tfyard.kubelet.processes import ProcessNodeOptions, ProcessRuntime
from tfyard.kubelet.server import KubeletServer, server_tls
from tfyard.kubelet.sources import CLAIMS, VOLUMES
from tfyard.model import Job, Manifest
from tfyard.node.memory import capacity
from tfyard.node.pod_data import LOOPBACK
from tfyard.testing import ControlPlane


class CodeNode(Box):
    folder: Path

    @property
    def access(self) -> Access:
        return replace(self.plane.admin, namespace=self.namespace)

    async def create_claim(self, claim: Manifest) -> Path:
        """Bound at once to a directory, as a provisioner would do."""
        name = claim["metadata"]["name"]
        directory = self.folder / "claims" / name
        directory.mkdir(parents=True)
        volume = f"{self.namespace}-{name}"
        spec: dict[str, Any] = {
            "capacity": {"storage": "10Gi"},
            "accessModes": claim["spec"]["accessModes"],
            "hostPath": {"path": str(directory)},
            "claimRef": {"namespace": self.namespace, "name": name},
        }
        await self.client.send(requests.create(VOLUMES.path(), {"metadata": {"name": volume}, "spec": spec}))
        bound = {**claim, "spec": {**claim["spec"], "volumeName": volume}}
        await self.client.send(requests.create(CLAIMS.path(self.namespace), bound))
        path = CLAIMS.path(self.namespace, name, "status")
        await self.client.send(requests.patch(path, {"status": {"phase": "Bound"}}))
        return directory

    async def create_objects(self, objects: tuple[Manifest, ...]) -> None:
        for each in objects:
            if each["kind"] == "ConfigMap":
                await self.client.send(requests.create(requests.CONFIG_MAPS.path(self.namespace), each))
            else:
                await self.create_claim(each)

    async def run_task(self, job: Job, name: str) -> str:
        """A task of the job to its end; its log."""
        await self.start_task(job, name)
        await self.until_phase(name, "Succeeded")
        return self.log(name, "tensorflow")

    async def start_task(self, job: Job, name: str) -> None:
        spec = {**job.roles[0].template["spec"], "restartPolicy": "Never"}
        pod = {"metadata": {"name": name}, "spec": spec}
        await self.client.send(requests.create(requests.PODS.path(self.namespace), pod))


@asynccontextmanager
async def code_node(plane: ControlPlane, namespace: str, folder: Path) -> AsyncIterator[CodeNode]:
    name = f"{namespace}-node"
    pair = plane.kubelet_certificate(name, LOOPBACK)
    certificate, key = folder / "kubelet.crt", folder / "kubelet.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls = server_tls(certificate, key, plane.folder / "ca.crt")
    options = ProcessNodeOptions(node=name, api=plane.endpoint)
    async with plane.client() as client:
        await prepare(client, namespace)
        async with (
            ProcessRuntime(client, folder / "node", dict(os.environ), options=options) as runtime,
            KubeletServer(runtime, tls, LOOPBACK, 0) as server,
        ):
            machine = MachineFacts(
                name=name,
                address=LOOPBACK,
                port=server.port,
                version=f"v{plane.binaries.version}",
                capacity=capacity(folder),
            )
            try:
                async with Kubelet(client, runtime, MachineNode(client, machine), namespace, schedule=True):
                    made = CodeNode(plane, client, namespace, runtime)
                    made.folder = folder
                    yield made
            finally:  # it says that it is ready, and others schedule pods in this cluster
                await client.send(requests.delete(requests.NODES.path(name=name)))


def job_of(text: str, namespace: str) -> Job:
    (document,) = formats.read(text)
    return replace(formats.load(document), namespace=namespace)
