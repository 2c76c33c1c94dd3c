"""Lists and watches by the synchronous client: the twins of lists.py and watches.py, for short commands."""

import math
import random
import time
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from tfyard.kube.decoding import decode
from tfyard.kube.errors import Expired, KubeError, Undecodable, from_status
from tfyard.kube.kinds import (
    Added,
    Bookmark,
    Changed,
    Deleted,
    Kind,
    Modified,
    Removed,
    Snapshot,
    Trouble,
    Versioned,
)
from tfyard.kube.requests import Query, get
from tfyard.kube.sync import SyncClient
from tfyard.model.backoff import Backoff
from tfyard.model.callbacks import Contact

T = TypeVar("T", bound=Versioned)

PAGE = "500"
ONE_WATCH = 25.0
"""Longest duration of one watch request, in seconds. A server that is silent for longer is dead."""
DEAD = ONE_WATCH + 5.0
BACKOFF = Backoff(first=0.5, longest=10.0, jitter=0.5)


def pages(client: SyncClient, path: str, query: Query | None = None) -> list[bytes]:
    """The pages of a whole collection as bytes, all of one moment. If the server compacts that away (410), asks
    without pages."""
    try:
        return _pages(client, path, {**(query or {}), "limit": PAGE})
    except Expired:
        return _pages(client, path, dict(query or {}))


def list_all(client: SyncClient, kind: Kind[T], path: str, query: Query | None = None) -> list[T]:
    """A whole collection at one moment."""
    return _list(client, kind, path, query)[1]


def watch(
    client: SyncClient,
    kind: Kind[T],
    path: str,
    query: Query | None = None,
    deadline: float = math.inf,
    contact: Contact = lambda _problem: None,
) -> Iterator[Snapshot[T] | Changed[T] | Removed[T]]:
    """Like watches.watch, until `deadline` on the monotonic clock, but not before the first list. An object that
    cannot be decoded is an error here, because these commands read few of them."""
    backoff, version, is_listed = BACKOFF, "", False
    while not is_listed or time.monotonic() < deadline:
        try:
            if not version:
                version, items = _list(client, kind, path, query)
                is_listed = True
                yield Snapshot(items)
            if time.monotonic() >= deadline:
                return
            for event in _events(client, kind, path, _asked(query, version, deadline), contact):
                backoff, version = BACKOFF, event.object.metadata.resource_version
                if not isinstance(event, Bookmark):
                    yield Removed(event.object) if isinstance(event, Deleted) else Changed(event.object)
        except Undecodable:
            raise
        except KubeError as problem:
            if not is_listed:
                raise
            contact("" if isinstance(problem, Expired) else str(problem))
            version = "" if isinstance(problem, Expired) else version
            backoff = backoff.next()
            time.sleep(max(0.0, min(backoff.delay(random.random()), deadline - time.monotonic())))


class _PageMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _ListPart(msgspec.Struct, frozen=True):
    metadata: _PageMeta = _PageMeta()


_TOKENS = msgspec.json.Decoder(_ListPart)


def _pages(client: SyncClient, path: str, query: dict[str, str]) -> list[bytes]:
    answers, token = list[bytes](), ""
    while token or not answers:
        answers.append(client.read(get(path, {**query, "continue": token} if token else query)))
        token = decode(_TOKENS, answers[-1]).metadata.continue_
    return answers


def _list(client: SyncClient, kind: Kind[T], path: str, query: Query | None) -> tuple[str, list[T]]:
    objects: list[T] = []
    version = ""
    for answer in pages(client, path, query):
        page = decode(kind.page, answer)
        version = page.metadata.resource_version
        objects += page.items or []
    return version, objects


def _asked(query: Query | None, version: str, deadline: float) -> dict[str, str]:
    left = min(ONE_WATCH * random.uniform(0.8, 1.0), deadline - time.monotonic())
    parameters = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
    return {**(query or {}), **parameters, "timeoutSeconds": str(max(1, math.ceil(left)))}


def _events(
    client: SyncClient, kind: Kind[T], path: str, query: Query, contact: Contact
) -> Iterator[Added[T] | Modified[T] | Deleted[T] | Bookmark]:
    started = time.monotonic()
    for line in client.lines(get(path, query), DEAD, lambda: contact("")):
        event = decode(kind.event, line)
        if isinstance(event, Trouble):
            raise from_status(event.object)
        yield event
    if time.monotonic() - started < 0.5:  # a server that shuts down ends each new watch at once
        time.sleep(0.5)
