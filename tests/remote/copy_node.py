"""A job with a claim on a node of real processes, and the helper pods that are there."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.remote.code_node import CodeNode, code_node
from tfyard.install.roles import rules
from tfyard.kube import Client, Resource, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model.names import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.model.permission import Permission
from tfyard.remote.helper_pods.helper_pod import LABEL
from tfyard.remote.installing.addresses import KINDS, RBAC
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.testing import ControlPlane, eventually


class Helpers:
    """The helper pods of a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

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


class CopyNode(Helpers):
    def __init__(self, node: CodeNode) -> None:
        super().__init__(node.client, node.namespace)
        self.create_claim = node.create_claim

    async def claim(self, name: str = "out", modes: tuple[str, ...] = ("ReadWriteMany",)) -> Path:
        """Bound; its folder."""
        spec = {
            "accessModes": [*modes],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        }
        return await self.create_claim({"metadata": {"name": name}, "spec": spec})

    async def job(self, name: str = "mnist", claim: str = "out") -> StoredTFJob:
        """With one worker, which has the claim at /out."""
        replicas = {"replicas": 1, "template": {"spec": self._pod_spec(claim)}}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}}
        return StoredTFJob(
            TFJOBS, await self._create(TFJOBS, {**job, "spec": {"tfReplicaSpecs": {"Worker": replicas}}})
        )

    async def start_worker(self, found: StoredTFJob, claim: str = "out") -> None:
        """The pod that the operator would create."""
        labels = {JOB_NAME: found.name, REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": found.name, "uid": found.uid}
        owners = [{**job, "controller": True}]
        metadata = {"name": f"{found.name}-worker-0", "labels": labels, "ownerReferences": owners}
        await self._create(requests.PODS, {"metadata": metadata, "spec": self._pod_spec(claim)})

        async def look() -> None:
            pod = await self.client.send(requests.get(requests.PODS.path(self.namespace, metadata["name"])))
            assert pod["status"]["phase"] == "Running", pod["status"]

        await eventually(look)

    async def allow(self, user: str, allowed: Iterable[Permission]) -> None:
        role = {"metadata": {"name": user}, "rules": rules([*allowed])}
        await self._create(KINDS["Role"], role)
        subject = {"kind": "User", "name": user, "apiGroup": RBAC}
        reference = {"kind": "Role", "name": user, "apiGroup": RBAC}
        binding = {"metadata": {"name": user}, "subjects": [subject], "roleRef": reference}
        await self._create(KINDS["RoleBinding"], binding)

    async def restrict(self) -> None:
        """PodSecurity `restricted`."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        path = requests.NAMESPACES.path(name=self.namespace)
        await self.client.send(requests.patch(path, {"metadata": {"labels": labels}}))

    async def _create(self, resource: Resource, body: dict[str, Any]) -> Any:
        return await self.client.send(requests.create(resource.path(self.namespace), body))

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
    async with code_node(plane, namespace, folder) as node:
        yield CopyNode(node)
