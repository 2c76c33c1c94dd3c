"""A node of real processes in one namespace of the test control plane."""

import asyncio
import base64
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from tests.kubelet.pods import Pods
from tfyard import kube
from tfyard.kube import Client, requests
from tfyard.kubelet.kubelet import Kubelet
from tfyard.kubelet.nodes import Nodes
from tfyard.kubelet.processes import ProcessNodeOptions, ProcessRuntime
from tfyard.node.console import read_descriptor
from tfyard.testing import ControlPlane, builders, eventually


class Box(Pods):
    """One namespace with a node of real processes."""

    def __init__(self, plane: ControlPlane, client: Client, namespace: str, runtime: ProcessRuntime) -> None:
        super().__init__(client, namespace)
        self.plane, self.runtime = plane, runtime

    async def create(self, name: str, *containers: dict[str, Any], **spec: Any) -> Any:
        spec = {"restartPolicy": "Never", "containers": [*containers], **spec}
        return await self.create_pod({"metadata": {"name": name}, "spec": spec})

    async def until_clean(self) -> None:
        async def look() -> None:
            assert [*(self.runtime.folder / "pods").iterdir()] == []

        await eventually(look)

    def log(self, pod: str, container: str = "main", *, previous: bool = False) -> str:
        return self.runtime.logs(self.namespace, pod, container, previous=previous).path.read_text()

    async def run(self, pod: str, line: str, container: str = "main") -> str:
        """As `kubectl exec` does; what it writes."""
        argv = ["/bin/sh", "-c", line]
        process = await self.runtime.exec(self.namespace, pod, container, argv, stdin=False, tty=False)
        try:
            output = await asyncio.to_thread(Path(f"/proc/self/fd/{process.stdout}").read_text)
            assert await process.wait() == 0
            return output
        finally:
            for end in filter(None, (process.stdout, process.stderr)):
                os.close(end)

    def kubectl(self, *args: str) -> str:
        return self.plane.kubectl("-n", self.namespace, *args)

    async def told(self, pod: str, text: str) -> str:
        """The events of a pod, once this is among them: they are written in the background."""

        async def look() -> str:
            shown = await asyncio.to_thread(self.kubectl, "events", "--for", f"pod/{pod}")
            assert text in shown, shown
            return shown

        return await eventually(look)


def shell(line: str, name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "none", "command": ["/bin/sh", "-c", line], **fields}


def python(line: str, name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "none", "command": [sys.executable, "-c", line], **fields}


@asynccontextmanager
async def box(
    plane: ControlPlane, namespace: str, folder: Path, options: ProcessNodeOptions | None = None
) -> AsyncIterator[Box]:
    host = urlsplit(plane.server)
    api = str(host.hostname), int(host.port or 0)
    options = replace(options or ProcessNodeOptions(), api=api, node=f"{namespace}-node")
    async with plane.client() as client:
        await prepare(client, namespace)
        async with ProcessRuntime(client, folder, dict(os.environ), options=options) as runtime:
            nodes = Nodes(client, [options.node])
            async with Kubelet(client, runtime, nodes, namespace, schedule=True):
                yield Box(plane, client, namespace, runtime)


async def prepare(client: Client, namespace: str) -> None:
    """What the controller manager would add to a namespace."""
    authority = base64.b64decode(client.access.cluster.certificate_authority_data).decode()
    bundle = builders.config_map("kube-root-ca.crt", {"ca.crt": authority})
    with contextlib.suppress(kube.AlreadyExists):  # the second box in the same namespace
        await builders.create_service_account(client, namespace, "default")
        await client.send(requests.create(requests.CONFIG_MAPS.path(namespace), bundle))


async def eventually_logged(here: Box, pod: str, text: str = "\n", container: str = "main") -> None:
    async def look() -> None:
        assert text in here.log(pod, container)

    await eventually(look)


async def read_terminal(descriptor: int) -> bytes:
    """All that was written to it: one read may return a part."""
    os.set_blocking(descriptor, False)
    said = b""
    while data := await read_descriptor(descriptor):
        said += data
    return said


def first(pod: Any) -> Any:
    return pod["status"].get("containerStatuses", [{}])[0]
