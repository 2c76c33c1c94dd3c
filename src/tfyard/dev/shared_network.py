"""Where the system refuses pod networks: pods share that of the machine, and host:port pairs are replaced."""

import asyncio
import socket
from typing import Self

from tfyard.controlplane.components import LOOPBACK
from tfyard.dev.services import ServiceView
from tfyard.kube import Changed, Client, Kind, Removed, Snapshot, WatchOptions, requests, watch
from tfyard.node.loopback import LoopbackPorts


class SharedNetwork:
    """`async with SharedNetwork(client)`: knows the names of all Services, by which pairs are recognized."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._services: set[str] = set()
        self._ports = LoopbackPorts(free_port)
        self._listed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        await self._listed.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)

    def rewrite(self, text: str, namespace: str) -> str:
        """Of a variable or an argument of a pod in this namespace."""
        return self._ports.rewrite(text, namespace, self._services)

    async def _watch(self) -> None:
        options = WatchOptions(retry_first_list=True)
        async for change in watch(self._client, Kind(ServiceView), requests.SERVICES.path(), options=options):
            match change:
                case Snapshot(items):
                    self._services = {_name(service) for service in items}
                    self._listed.set()
                case Changed(service):
                    self._services.add(_name(service))
                case Removed(service):
                    self._services.discard(_name(service))


def _name(service: ServiceView) -> str:
    return f"{service.metadata.name}.{service.metadata.namespace}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
