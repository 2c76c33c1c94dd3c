"""Lists a collection and watches it until closed, through disconnects and restarts of the server.

The caller sees a Snapshot (replaces all that was known), then Changed and Removed; after a gap that cannot be
closed, another Snapshot. Reconnections that lose nothing are invisible.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import msgspec

from tfyard.kube.decoding import decode, outline, parts
from tfyard.kube.errors import Expired, KubeError, Undecodable, from_status, retry_after
from tfyard.kube.kinds import (
    Added,
    Bookmark,
    Changed,
    Deleted,
    Kind,
    ListMeta,
    Marked,
    Modified,
    Removed,
    Snapshot,
    Trouble,
    Versioned,
)
from tfyard.kube.lists import list_all, read
from tfyard.kube.requests import Query, Request, get
from tfyard.kube.transport import Client
from tfyard.model.backoff import Backoff

T = TypeVar("T", bound=Versioned)


class WatchOptions(msgspec.Struct, frozen=True):
    idle_timeout: float = 90.0
    """Seconds. Most apiservers send a bookmark each minute, so a longer silence suggests a dead connection (a
    stopped machine or a cut cable closes none); resuming from the same version is cheap."""
    request_timeout: float = 300.0
    """Duration of one watch request in seconds; the server's own default is 30 to 60 minutes."""
    backoff: Backoff = Backoff(first=0.5, longest=30.0, jitter=0.5)
    retry_first_list: bool = False
    """Whether a first list that fails is retried as well, instead of being an error."""
    on_interrupt: Callable[[KubeError | None], None] = lambda _problem: None
    """Called at each interruption, for logs and metrics."""


DEFAULT_OPTIONS = WatchOptions()


async def watch(
    client: Client,
    kind: Kind[T],
    path: str,
    query: Query | None = None,
    options: WatchOptions = DEFAULT_OPTIONS,
) -> AsyncIterator[Snapshot[T] | Changed[T] | Removed[T]]:
    """Yields a Snapshot and then changes. Raises only before the first Snapshot; later even 401 and 403 are
    retried, because a restarting apiserver answers those until its caches are filled. Closing the generator ends
    it."""
    backoff, selection, version, is_listed = options.backoff, dict(query or {}), "", False
    while True:
        try:
            if not version:
                listing = await list_all(client, kind, path, selection)
                version, is_listed = listing.resource_version, True
                yield Snapshot(listing.items)
            started = time.monotonic()
            request = _request(path, selection, version, options.request_timeout)
            async with client.stream(request, options.idle_timeout) as chunks:
                async for line in watch_lines(chunks):
                    event = _decode(kind, line)
                    backoff = options.backoff
                    version = event.object.metadata.resource_version
                    if not isinstance(event, Bookmark):
                        view = kind.keep(event.object)
                        yield Removed(view) if isinstance(event, Deleted) else Changed(view)
            options.on_interrupt(None)
            if time.monotonic() - started < 1.0:  # a server that shuts down ends each new watch at once
                backoff = await _wait(backoff)
        except KubeError as problem:
            if not (is_listed or options.retry_first_list):
                raise
            options.on_interrupt(problem)
            version = "" if isinstance(problem, (Expired, Undecodable)) else version
            backoff = await _wait(backoff, retry_after(problem))


async def _wait(backoff: Backoff, least: float = 0.0) -> Backoff:
    """Waits with jitter: the watches of a restarted apiserver must not all come back at the same moment."""
    backoff = backoff.next()
    await asyncio.sleep(least + backoff.delay(random.random()))
    return backoff


def _request(path: str, query: dict[str, str], version: str, timeout: float) -> Request:
    """A watch request with a random timeout: watches that began together must not all end together."""
    seconds = str(int(timeout * random.uniform(1.0, 2.0)))
    parameters = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
    return get(path, {**query, **parameters, "timeoutSeconds": seconds})


def _decode(kind: Kind[T], line: bytes) -> Added[T] | Modified[T] | Deleted[T] | Bookmark:
    try:
        event = decode(kind.event, line)
    except Undecodable as problem:
        return _salvage(kind, line, problem)
    if isinstance(event, Trouble):
        raise from_status(event.object)
    return event


def _salvage(kind: Kind[T], line: bytes, problem: Undecodable) -> Modified[T] | Deleted[T] | Bookmark:
    """The event of an object that cannot be decoded, with what is salvaged of it; otherwise it is skipped: it must
    not stop the watch on other objects. But a removed object must not stay in a cache for ever, so a removal that
    is skipped costs a new list."""
    event, version = outline(line), ""
    if event.object is None or not (version := event.object.metadata.resource_version):
        raise problem
    view = next((read(kind, each) for each in parts(line)), None)
    if view is not None and event.type in ("ADDED", "MODIFIED", "DELETED"):
        return Deleted(view) if event.type == "DELETED" else Modified(view)
    if event.type == "DELETED":
        raise problem
    return Bookmark(Marked(ListMeta(version)))


async def watch_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of any length; half a line at the end of a broken connection is dropped."""
    partial = b""
    async for chunk in chunks:
        *whole, partial = (partial + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
