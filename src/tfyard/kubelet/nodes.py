"""Nodes that exist as objects and heartbeats only: enough for schedulers, node controllers and kubectl."""

import asyncio
import contextlib
from datetime import UTC, datetime

from tfyard.kube import AlreadyExists, Client, NotFound, Patch, Transient, requests
from tfyard.kubelet.pod_status import timestamp

CAPACITY = {"cpu": "1000", "memory": "4000Gi", "pods": "20000", "nvidia.com/gpu": "1000"}
HEARTBEAT = 10.0
LEASE_SECONDS = 40


class Nodes:
    """Registered while in use; their leases are renewed, or the node controller would evict their pods."""

    def __init__(self, client: Client, names: list[str]) -> None:
        self.client, self.names, self.lost = client, names, set[str]()

    def alive(self) -> list[str]:
        return [name for name in self.names if name not in self.lost]

    async def register(self) -> None:
        for name in self.names:
            node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
            with contextlib.suppress(AlreadyExists):  # a restarted kubelet finds its node
                await self.client.send(requests.create(requests.NODES.path(), node))
            await self.report(name, "True", "KubeletReady")
        await self._renew()

    async def report(self, name: str, ready: str, reason: str) -> None:
        at = timestamp(datetime.now(UTC))
        conditions = [{"type": "Ready", "status": ready, "reason": reason, "lastTransitionTime": at}]
        status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": conditions}
        path = requests.NODES.path(name=name, subresource="status")
        await self.client.send(requests.patch(path, {"status": status}, Patch.STRATEGIC))

    async def heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self._renew()
            except Transient:
                continue  # a lease lasts four heartbeats

    async def unregister(self) -> None:
        for name in self.names:
            try:
                await self.client.send(requests.delete(requests.NODES.path(name=name)))
            except NotFound:
                continue  # somebody has deleted it

    async def _renew(self) -> None:
        for name in self.alive():
            times = {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            path = requests.LEASES.path("kube-node-lease", name)
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
            await self.client.send(requests.apply(path, {**lease, "spec": times}))
