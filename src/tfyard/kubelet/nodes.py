"""Nodes that exist as objects and heartbeats only: enough for schedulers, node controllers and kubectl."""

import asyncio
import contextlib
import datetime

from tfyard.kube import AlreadyExists, Client, NotFound, Patch, Transient, requests

CAPACITY = {"cpu": "1000", "memory": "4000Gi", "pods": "20000", "nvidia.com/gpu": "1000"}
HEARTBEAT = 10.0
LEASE_SECONDS = 40


def now(micro: bool = False) -> str:
    moment = datetime.datetime.now(datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


class Nodes:
    """Registered while in use; their leases are renewed as a kubelet does, or a controller would evict."""

    def __init__(self, client: Client, names: list[str]) -> None:
        self.client, self.names, self.lost = client, names, set[str]()

    def alive(self) -> list[str]:
        return [name for name in self.names if name not in self.lost]

    async def register(self) -> None:
        for name in self.names:
            node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
            with contextlib.suppress(AlreadyExists):  # a kubelet that restarts finds its node where it was
                await self.client.send(requests.create(requests.NODES.path(), node))
            await self.report(name, "True", "KubeletReady")
        await self._renew()

    async def report(self, name: str, ready: str, reason: str) -> None:
        conditions = [{"type": "Ready", "status": ready, "reason": reason, "lastTransitionTime": now()}]
        status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": conditions}
        path = requests.NODES.path(name=name, subresource="status")
        await self.client.send(requests.patch(path, {"status": status}, Patch.STRATEGIC))

    async def heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self._renew()
            except Transient:
                continue  # the next beat is soon, and a lease lives four of them

    async def unregister(self) -> None:
        for name in self.names:
            try:
                await self.client.send(requests.delete(requests.NODES.path(name=name)))
            except NotFound:
                continue  # a test has deleted it: that is how nodes are lost

    async def _renew(self) -> None:
        for name in self.alive():
            times = {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": now(micro=True),
            }
            path = requests.LEASES.path("kube-node-lease", name)
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
            await self.client.send(requests.apply(path, {**lease, "spec": times}))
