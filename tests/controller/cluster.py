"""An operator on the real control plane, and helpers that read the cluster for its tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tfyard.controller import crds
from tfyard.controller.operator import Operator, OperatorSettings
from tfyard.kube import Client, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.testing import ControlPlane, ScriptedKubelet, builders, eventually
from tfyard.testing.script import Scripts

Manifest = dict[str, Any]


def tfjob(name: str = "train", policy: Manifest | None = None, **roles: Any) -> Manifest:
    """A TFJob; each role is a number, or the fields of its replica spec."""
    specs = {role: _replicas(value) for role, value in roles.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": specs, **({"runPolicy": policy} if policy else {})},
    }


def _replicas(value: Any) -> Manifest:
    fields = {"replicas": value} if isinstance(value, int) else value
    container = {"name": "tensorflow", "image": "example/train:1", "command": ["python", "train.py"]}
    return {"template": {"spec": {"containers": [container]}}, **fields}


class Bench:
    """One namespace of the cluster with an operator in it."""

    def __init__(
        self, client: Client, namespace: str, kubelet: ScriptedKubelet, operator: Operator | None = None
    ) -> None:
        self.client, self.namespace, self.kubelet, self.operator = client, namespace, kubelet, operator

    async def submit(self, manifest: Manifest) -> Manifest:
        made: Manifest = await self.client.send(requests.create(TFJOBS.path(self.namespace), manifest))
        return made

    async def get(self, name: str = "train") -> Manifest:
        found: Manifest = await self.client.send(requests.get(TFJOBS.path(self.namespace, name)))
        return found

    async def status(self, name: str = "train") -> Manifest:
        return (await self.get(name)).get("status") or {}

    async def patch(self, body: Manifest, name: str = "train") -> None:
        await self.client.send(requests.patch(TFJOBS.path(self.namespace, name), body))

    async def names(self, resource: Any = requests.PODS) -> set[str]:
        found = await self.client.send(requests.get(resource.path(self.namespace)))
        return {item["metadata"]["name"] for item in found["items"]}

    async def jobs(self) -> set[str]:
        return await self.names(TFJOBS)

    async def phase(self, wanted: str, name: str = "train", timeout: float = 60.0) -> Manifest:
        """Wait until an operator has written that the job is in this phase; its status."""

        async def look() -> Manifest:
            status = await self.status(name)
            assert status.get("conditions"), status
            assert status.get("phase") == wanted, status
            return status

        return await eventually(look, timeout)

    async def pods(self, wanted: set[str], timeout: float = 60.0) -> None:
        async def look() -> None:
            assert await self.names() == wanted

        await eventually(look, timeout)


@asynccontextmanager
async def operating(client: Client, namespace: str, **settings: Any) -> AsyncIterator[Operator]:
    operator = Operator(client, OperatorSettings(namespaces=(namespace,), **settings), [TFJOBS, OLD_TFJOBS])
    running = asyncio.create_task(operator.run())
    try:
        yield operator
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def bench(
    plane: ControlPlane, namespace: str, script: Scripts, schedules: bool = False, **settings: Any
) -> AsyncIterator[Bench]:
    """`schedules`: the plane's own scheduler does."""
    async with plane.client() as client, plane.client() as other:
        await install(client)
        async with (
            ScriptedKubelet(other, script, namespace, schedule=not schedules) as kubelet,
            operating(client, namespace, **settings) as operator,
        ):
            yield Bench(client, namespace, kubelet, operator)


async def install(client: Client) -> None:
    """Our definitions in all versions; where they are already, nothing changes."""
    await builders.install_crds(client)
    await eventually(lambda: _published(client))


async def _published(client: Client) -> None:
    try:
        found = await crds.ready(client, install=False)
    except crds.CrdNotUsable as problem:
        raise AssertionError(problem) from problem
    assert found == [TFJOBS, OLD_TFJOBS]
