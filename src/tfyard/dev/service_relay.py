"""Services in the cluster, in place of kube-proxy: TCP connections to cluster addresses are forwarded to pods.

The relay also keeps the names of Services in the pods' hosts files.
"""

import asyncio
import itertools
import logging
import time
from typing import Self, TypeVar

from tfyard.dev import services
from tfyard.dev.connections import Listener, Stream, join
from tfyard.dev.services import Address, Key, RelayedService, Route, key_of
from tfyard.kube import (
    Changed,
    Client,
    Kind,
    KubeError,
    Removed,
    Resource,
    Snapshot,
    WatchOptions,
    requests,
    watch,
)
from tfyard.node.hosts import HostsFiles
from tfyard.views.objects import Slice

log = logging.getLogger(__name__)

ENDPOINT_SLICES = requests.ENDPOINT_SLICES
BURST = 0.05
"""Seconds in which changes are collected: a job of a thousand tasks must not rewrite each file a thousand times.
If rewriting takes long, it may take a tenth of the time."""

V = TypeVar("V", RelayedService, Slice)


class ServiceRelay:
    """The relay until the end of `async with ServiceRelay(client, hosts)`, in the network where the cluster
    addresses are local. When the block begins, all existing Services are served."""

    def __init__(self, client: Client, hosts: HostsFiles) -> None:
        self._client, self._hosts = client, hosts
        self._services: dict[Key, RelayedService] = {}
        self._slices: dict[Key, Slice] = {}
        self._routes: dict[Address, Route] = {}
        self._listeners: dict[Address, Listener] = {}
        self._stopped: list[Listener] = []
        self._turns = itertools.count()
        self._unlisted = {"services", ENDPOINT_SLICES.plural}
        self._change, self._served = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        self._group = await asyncio.TaskGroup().__aenter__()
        self._tasks = [
            self._group.create_task(self._watch(requests.SERVICES, RelayedService, self._services)),
            self._group.create_task(self._watch(ENDPOINT_SLICES, Slice, self._slices)),
            self._group.create_task(self._keep_serving()),
        ]
        try:
            await self._served.wait()
        except BaseException:
            self._cancel()
            raise
        return self

    async def __aexit__(self, *problem: object) -> None:
        self._cancel()
        for listener in (*self._listeners.values(), *self._stopped):
            await listener.close()
        await self._group.__aexit__(*problem)  # type: ignore[arg-type]

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _watch(self, resource: Resource, view: type[V], known: dict[Key, V]) -> None:
        options = WatchOptions(retry_first_list=True, on_interrupt=_log_interrupt)
        async for change in watch(self._client, Kind(view), resource.path(), options=options):
            match change:
                case Snapshot(items):
                    known.clear()
                    known.update((key_of(item), item) for item in items)
                    self._unlisted.discard(resource.plural)
                case Changed(item):
                    known[key_of(item)] = item
                case Removed(item):
                    known.pop(key_of(item), None)
            self._change.set()

    async def _keep_serving(self) -> None:
        took = 0.0
        while True:
            await self._change.wait()
            await asyncio.sleep(max(BURST, 10 * took))
            self._change.clear()
            if not self._unlisted:
                started = time.monotonic()
                await self._serve()
                self._served.set()
                took = time.monotonic() - started

    async def _serve(self) -> None:
        known = sorted(self._services.values(), key=key_of)
        slices = services.by_service(self._slices.values())
        self._routes = services.routes(known, slices)
        self._hosts.set_names(services.names(known, slices))
        for address in self._listeners.keys() - self._routes.keys():
            self._listeners[address].stop()
            self._stopped.append(self._listeners.pop(address))
        self._stopped = [listener for listener in self._stopped if listener.is_busy]
        for address in self._routes.keys() - self._listeners.keys():
            await self._listen(address)

    async def _listen(self, address: Address) -> None:
        listener = Listener(lambda stream: self._accept(address, stream))
        try:
            await listener.start(*address)
        except OSError as problem:
            log.warning("no connections to the Service at %s:%d: %s", *address, problem)
            return
        self._listeners[address] = listener

    async def _accept(self, address: Address, stream: Stream) -> None:
        """Forward a connection to the next pod in turn; a pod that does not answer is skipped."""
        route = self._routes.get(address)
        if route is None:
            return
        client = stream[1].get_extra_info("peername")[0]
        turn = hash(client) if route.is_sticky else next(self._turns)
        first = turn % len(route.targets)
        for target in (*route.targets[first:], *route.targets[:first]):
            try:
                pod = await asyncio.open_connection(*target)
            except OSError as problem:
                log.info("the pod at %s:%d does not answer: %s", *target, problem)
                continue
            await join(stream, pod)
            return


def _log_interrupt(problem: KubeError | None) -> None:
    if problem is not None:
        log.warning("the relay of Services cannot watch: %s", problem)
