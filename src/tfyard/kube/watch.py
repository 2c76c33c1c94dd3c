"""A collection and everything that happens to it, for ever: lists, watches, and survives what comes between.

The caller sees a Snapshot (believe this, forget the rest), then Changed and Removed; after a gap that cannot
be bridged, another Snapshot. Reconnections that lose nothing are invisible.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import msgspec

from tfyard.kube.decoding import decode, name_of, outline
from tfyard.kube.errors import Expired, KubeError, Transient, Undecodable, from_status
from tfyard.kube.kinds import Added, Bookmark, Deleted, Kind, ListMeta, Marked, Modified, Trouble, Versioned
from tfyard.kube.lists import list_all
from tfyard.kube.requests import Query, Request, get
from tfyard.kube.transport import Client

T = TypeVar("T", bound=Versioned)

log = logging.getLogger(__name__)


class Snapshot(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]


class Changed(msgspec.Struct, Generic[T], frozen=True):
    object: T


class Removed(msgspec.Struct, Generic[T], frozen=True):
    """The object as it was last; it may also have stopped matching the selector."""

    object: T


def ignore(_: KubeError | None) -> None:
    """Nobody wants to know."""


class Patience(msgspec.Struct, frozen=True):
    """`idle`: apiservers mostly send a bookmark each minute, so longer silence smells of a dead connection (a
    stopped machine or a cut cable closes nothing), and asking again from the same version is cheap.
    `life`: how long one request asks to be served; the server's own default is 30 to 60 minutes.
    `insists`: whether a first list that is refused is waited for as well, instead of being an error.
    `told` hears of each interruption: for logs and metrics.
    """

    idle: float = 90.0
    life: float = 300.0
    first_pause: float = 0.5
    longest_pause: float = 30.0
    insists: bool = False
    told: Callable[[KubeError | None], None] = ignore


DEFAULT_PATIENCE = Patience()


class _Backoff:
    def __init__(self, patience: Patience) -> None:
        self._patience, self._pause = patience, 0.0

    def progress(self) -> None:
        self._pause = 0.0

    async def wait(self, at_least: float | None = None) -> None:
        """Doubling, with jitter: a restarted apiserver must not meet all its watchers at the same instant."""
        grown = self._pause * 2 or self._patience.first_pause
        self._pause = min(grown, self._patience.longest_pause)
        await asyncio.sleep((at_least or 0.0) + self._pause * random.uniform(0.5, 1.0))


async def watch(
    client: Client,
    kind: Kind[T],
    path: str,
    query: Query | None = None,
    patience: Patience = DEFAULT_PATIENCE,
) -> AsyncIterator[Snapshot[T] | Changed[T] | Removed[T]]:
    """Raises only before the first Snapshot, if at all; afterwards even 401 and 403 are waited out, for a
    restarting apiserver answers those until its own caches are filled. End it by closing the generator."""
    backoff, chosen, version, begun = _Backoff(patience), dict(query or {}), "", False
    while True:
        try:
            if not version:
                listing = await list_all(client, kind, path, chosen)
                version, begun = listing.resource_version, True
                yield Snapshot(listing.items)
            started = time.monotonic()
            request = _request(path, chosen, version, patience)
            async with client.stream(request, patience.idle) as chunks:
                async for line in watch_lines(chunks):
                    event = _decode(kind, line)
                    backoff.progress()
                    version = event.object.metadata.resource_version
                    if not isinstance(event, Bookmark):
                        yield Removed(event.object) if isinstance(event, Deleted) else Changed(event.object)
            patience.told(None)
            if time.monotonic() - started < 1.0:
                await backoff.wait()  # a server that shuts down ends each new watch at once
        except KubeError as problem:
            if not (begun or patience.insists):
                raise
            patience.told(problem)
            version = "" if isinstance(problem, (Expired, Undecodable)) else version
            await backoff.wait(problem.retry_after if isinstance(problem, Transient) else None)


def _request(path: str, query: dict[str, str], version: str, patience: Patience) -> Request:
    """The end is spread: watches that began together, after a restart, must not all end together."""
    life = str(int(patience.life * random.uniform(1.0, 2.0)))
    asked = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": life}
    return get(path, {**query, **asked})


def _decode(kind: Kind[T], line: bytes) -> Added[T] | Modified[T] | Deleted[T] | Bookmark:
    try:
        event = decode(kind.event, line)
    except Undecodable as problem:
        return _pass_over(line, problem)
    if isinstance(event, Trouble):
        raise from_status(event.object)
    return event


def _pass_over(line: bytes, problem: Undecodable) -> Bookmark:
    """As if nothing had happened: all others go on. But what has gone must not be believed in for ever, so a
    removal that cannot be read costs a new list."""
    known = outline(line)
    if known.object is None or not known.object.metadata.resource_version or known.type == "DELETED":
        raise problem
    log.warning("what happened to %s is passed over: %s", name_of(line), problem)
    return Bookmark(Marked(ListMeta(known.object.metadata.resource_version)))


async def watch_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of any length; half a line at the end of a broken connection is nothing."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
