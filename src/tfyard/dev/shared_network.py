"""The network of pods where the system refuses pod networks: that of the machine, with host:port pairs replaced.

TF_CONFIG and flags such as --worker_hosts name each task as host:port, to all tasks alike, so it is enough to
replace each pair by the same free port of the loopback in all of them. A server on a port that no pair names, such
as TensorBoard, listens on that port of the machine.
"""

import asyncio
import re
import socket
from collections.abc import Callable, Collection
from typing import Self

from tfyard.controlplane.components import LOOPBACK
from tfyard.dev.services import RelayedService
from tfyard.kube import Changed, Client, Kind, Removed, Snapshot, WatchOptions, requests, watch
from tfyard.node.hosts import DOMAIN

LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
PAIR = re.compile(rf"(?<![\w.:@-])({LABEL}(?:\.{LABEL})*)\.?:(\d{{1,5}})(?![\w.])")


class SharedNetwork:
    """Watches the names of all Services, by which pairs are recognized, in `async with SharedNetwork(client)`."""

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
        """A variable or argument of a pod in this namespace, with its pairs replaced."""
        return self._ports.rewrite(text, namespace, self._services)

    async def _watch(self) -> None:
        options = WatchOptions(retry_first_list=True)
        async for change in watch(
            self._client, Kind(RelayedService), requests.SERVICES.path(), options=options
        ):
            match change:
                case Snapshot(items):
                    self._services = {_name(service) for service in items}
                    self._listed.set()
                case Changed(service):
                    self._services.add(_name(service))
                case Removed(service):
                    self._services.discard(_name(service))


class LoopbackPorts:
    """Ports of the loopback in place of host:port pairs. `take` returns a free port."""

    def __init__(self, take: Callable[[], int]) -> None:
        self._take = take
        self.replaced: dict[str, int] = {}
        """`name.namespace:port` -> port of the loopback."""

    def rewrite(self, text: str, namespace: str, services: Collection[str]) -> str:
        """The text of a pod of this namespace with every pair replaced whose host is a name of the cluster: one of
        `services` (`name.namespace`), or a name that ends in .svc."""

        def replace(pair: re.Match[str]) -> str:
            name = _full_name(pair[1], namespace, services)
            return f"{LOOPBACK}:{self._port(f'{name}:{pair[2]}')}" if name else pair[0]

        return PAIR.sub(replace, text)

    def _port(self, pair: str) -> int:
        if pair not in self.replaced:
            self.replaced[pair] = self._take()
        return self.replaced[pair]


def _full_name(host: str, namespace: str, services: Collection[str]) -> str:
    """`name.namespace` of a Service, or `hostname.name.namespace` of a pod; empty: neither of them."""
    base = host.removesuffix(DOMAIN).removesuffix(".svc")
    forms = (base, f"{base}.{namespace}")
    known = (form for form in forms if form in services or form.partition(".")[2] in services)
    return next(known, base if base != host else "")


def _name(service: RelayedService) -> str:
    return f"{service.metadata.name}.{service.metadata.namespace}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
