"""What tests of code do with a node of real processes that can be reached by exec."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from tests.remote.copy_node import CopyNode, copy_node
from tfyard import formats
from tfyard.kube import Access, requests
from tfyard.model import Job, Manifest
from tfyard.remote.addresses import TFJOBS
from tfyard.remote.jobs import Found
from tfyard.render import RenderOptions
from tfyard.render.tfjob import tfjob
from tfyard.testing import ControlPlane, eventually


class CodeNode:
    def __init__(self, plane: ControlPlane, node: CopyNode) -> None:
        self.plane, self.node = plane, node
        self.client, self.namespace = node.client, node.namespace

    @property
    def access(self) -> Access:
        return replace(self.plane.admin, namespace=self.namespace)

    async def create(self, objects: tuple[Manifest, ...]) -> None:
        """ConfigMaps, and claims, which are bound at once."""
        for each in objects:
            if each["kind"] == "ConfigMap":
                await self.client.send(requests.create(requests.CONFIG_MAPS.path(self.namespace), each))
            else:
                await self.node.claim(each["metadata"]["name"], tuple(each["spec"]["accessModes"]))

    async def create_job(self, job: Job) -> Found:
        """The TFJob, which nobody runs here."""
        manifest = tfjob(job, RenderOptions())[-1].manifest
        return Found(TFJOBS, await self.client.send(requests.create(TFJOBS.path(self.namespace), manifest)))

    async def run_task(self, job: Job, name: str) -> str:
        """A task of the job to its end; its log."""
        spec = {**job.roles[0].template["spec"], "restartPolicy": "Never"}
        pod = {"metadata": {"name": name}, "spec": spec}
        await self.client.send(requests.create(requests.PODS.path(self.namespace), pod))

        async def look() -> None:
            found = await self.client.send(requests.get(requests.PODS.path(self.namespace, name)))
            assert found["status"]["phase"] == "Succeeded", found["status"]

        await eventually(look)
        return await self.kubectl("logs", name, "-c", "tensorflow")

    async def kubectl(self, *words: str) -> str:
        return await asyncio.to_thread(self.plane.kubectl, "-n", self.namespace, *words)


@asynccontextmanager
async def code_node(plane: ControlPlane, namespace: str, folder: Path) -> AsyncIterator[CodeNode]:
    async with copy_node(plane, namespace, folder) as node:
        yield CodeNode(plane, node)


def job_of(text: str, namespace: str) -> Job:
    (document,) = formats.read(text)
    return replace(formats.load(document), namespace=namespace)
