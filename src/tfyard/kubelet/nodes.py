"""Objects and heartbeats of nodes, for schedulers, node controllers and kubectl."""

import asyncio
import contextlib
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from tfyard.kube import AlreadyExists, Client, NotFound, Patch, Transient, requests
from tfyard.kube.times import micro_time, timestamp

CAPACITY = {"cpu": "1000", "memory": "4000Gi", "pods": "20000", "nvidia.com/gpu": "1000"}
HEARTBEAT = 10.0
LEASE_SECONDS = 40


class Nodes:
    """Nodes that are registered while in use. Their leases are renewed, or their pods would be evicted."""

    def __init__(self, client: Client, names: list[str]) -> None:
        self.client, self.names, self.lost = client, names, set[str]()

    def alive(self) -> list[str]:
        return [name for name in self.names if name not in self.lost]

    healthy: tuple[dict[str, str], ...] = ()
    """Conditions besides Ready, for troubles that a healthy node does not have: they are False."""

    def labels(self, name: str) -> dict[str, str]:
        return {"kubernetes.io/hostname": name}

    def status(self) -> dict[str, Any]:
        """Status of each node, without its conditions."""
        return {"capacity": CAPACITY, "allocatable": CAPACITY}

    async def register(self) -> None:
        for name in self.names:
            node = {"metadata": {"name": name, "labels": self.labels(name)}}
            with contextlib.suppress(AlreadyExists):  # a restarted kubelet finds its node
                await self.client.send(requests.create(requests.NODES.path(), node))
            await self.report(name, "True", "KubeletReady")
        await self._renew()

    async def report(self, name: str, ready: str, reason: str) -> None:
        at = timestamp(datetime.now(UTC))
        conditions = [{"type": "Ready", "status": ready, "reason": reason, "lastTransitionTime": at}]
        healthy = [{**each, "status": "False", "lastTransitionTime": at} for each in self.healthy]
        status = {"conditions": [*conditions, *healthy], **self.status()}
        path = requests.NODES.path(name=name, subresource="status")
        await self.client.send(requests.patch(path, {"status": status}, Patch.STRATEGIC))

    async def heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self._renew()
            except (Transient, NotFound):  # NotFound: deleted while it was registered again
                continue  # a lease lasts four heartbeats

    async def unregister(self) -> None:
        for name in self.names:
            try:
                await self.client.send(requests.delete(requests.NODES.path(name=name)))
            except NotFound:
                continue  # a user has deleted it

    async def _renew(self) -> None:
        for name in self.alive():
            times = {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": micro_time(datetime.now(UTC)),
            }
            path = requests.LEASES.path("kube-node-lease", name)
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
            await self.client.send(requests.apply(path, {**lease, "spec": times}))


class MachineFacts(Struct, frozen=True, kw_only=True):
    """This machine, as its node describes it."""

    name: str
    address: str
    """IP address where the apiserver reaches the kubelet; it would try to resolve a name."""
    port: int
    version: str
    """Version of Kubernetes."""
    capacity: Mapping[str, str]


class MachineNode(Nodes):
    """The node of this machine. Its object stays when the kubelet ends, as on any cluster: the pods of a node that
    is deleted are deleted, too."""

    healthy = (
        {"type": "MemoryPressure", "reason": "KubeletHasSufficientMemory"},
        {"type": "DiskPressure", "reason": "KubeletHasNoDiskPressure"},
        {"type": "PIDPressure", "reason": "KubeletHasSufficientPID"},
    )

    def __init__(self, client: Client, machine: MachineFacts) -> None:
        super().__init__(client, [machine.name])
        self.machine = machine
        self._gone: dict[str, None] = {}
        """Resources that an earlier kubelet reported; a null removes them."""

    async def register(self) -> None:
        try:
            node = await self.client.send(requests.get(requests.NODES.path(name=self.machine.name)))
            self._gone = dict.fromkeys(node["status"].get("capacity") or {})
        except NotFound:
            self._gone = {}
        await super().register()

    async def _renew(self) -> None:
        """Register the node again if it was deleted: a cluster with one node would have none."""
        try:
            await self.client.send(requests.get(requests.NODES.path(name=self.machine.name)))
        except NotFound:
            await self.register()
        else:
            await super()._renew()

    def labels(self, name: str) -> dict[str, str]:
        arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        return {**super().labels(name), "kubernetes.io/os": "linux", "kubernetes.io/arch": arch}

    def status(self) -> dict[str, Any]:
        """Status with the feature by which the apiserver passes WebSockets on to the kubelet as they are."""
        return {
            "capacity": {**self._gone, **self.machine.capacity},
            "allocatable": {**self._gone, **self.machine.capacity},
            "addresses": [{"type": "InternalIP", "address": self.machine.address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.machine.port}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
            "nodeInfo": self._info(),
        }

    async def unregister(self) -> None:
        """Do nothing: the object stays."""

    def _info(self) -> dict[str, str]:
        ids = {"machineID": self.machine.name, "systemUUID": self.machine.name}
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {
            **ids,
            "bootID": boot,
            "kernelVersion": platform.release(),
            "osImage": platform.platform(terse=True),
            "containerRuntimeVersion": "tfyard://processes",
            "kubeletVersion": f"{self.machine.version}+tfyard",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": self.labels("")["kubernetes.io/arch"],
        }
