"""Objects with one odd value each, at the edges of its type or of another type, and a server that has them."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from random import Random
from typing import Any

import msgspec
from aiohttp import web

Manifest = dict[str, Any]
Path = tuple[str | int, ...]

TIMES = ("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z")
TIMES += (
    "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00+14:00",
    "2026-01-01T00:00:00",
    "2026-02-30T00:00:00Z",
)
NUMBERS = (-1, 0, 2**31, -(2**63), 2**63, 2**64, 10**30, 1e308, -0.5, "9" * 63, "9" * 5000)
QUANTITIES = ("1e1000", "-1Ei", "1Qi", ".", "٣")
OTHERS = (None, True, "", [], {}, [None], {"": None}, [[]], {"a": {"b": []}}, "\x00\ud7ff")
ODD: tuple[Any, ...] = (*TIMES, *NUMBERS, *QUANTITIES, *OTHERS)
LONG = "x" * 1_000_000
MANY = {f"example.com/label-{number}": "" for number in range(5_000)}
COMBINED, COMBINATIONS = 3, 150
"""Odd values of an object, and number of objects that have so many."""
DATES = ("Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -1200", "Mon, 01 Jan 0001 00:00:00 GMT")
DATES += ("", "²", "yesterday", "9" * 5000, "Thu, 01 Jan 1970 00:00:00 GMT")
RETRIES = ("²", "-1", "1e9", "0", "Fri, 31 Dec 9999 23:59:59 GMT")
"""Odd values of the headers Date and Retry-After."""
IDENTITY = {"name", "namespace", "uid", "resourceVersion"}
"""Fields of the metadata without which a server has no object."""


def oddities(base: Manifest) -> list[tuple[Path, Any]]:
    """Each value of the object, by its path, with each odd one that may replace it; the longest only where a
    megabyte costs little."""
    paths = [path for path in _paths(base) if path[0] not in ("apiVersion", "kind", "metadata")]
    paths += [
        path for path in _paths(base["metadata"], ("metadata",)) if path[1:] and path[1] not in IDENTITY
    ]
    short = [(path, value) for path in paths for value in ODD]
    return [*short, *((path, LONG) for path in paths if len(path) == 2)]


def odd_objects(build: Callable[[int], Manifest], every: int) -> list[Manifest]:
    """Objects with numbers from 1: each has an odd value, the last ones several."""
    base, random = build(1), Random(1)
    changes = oddities(base)
    many: list[tuple[Path, Any]] = [
        (("metadata", name), MANY) for name in ("labels", "annotations") if name in base["metadata"]
    ]
    singles = [[change] for change in (*changes[::every], *many)]
    short = [change for change in changes if change[1] is not LONG]
    several = [random.sample(short, COMBINED) for _ in range(COMBINATIONS)]
    return [_with(build(number), each) for number, each in enumerate([*singles, *several], 1)]


def _with(manifest: Manifest, changes: list[tuple[Path, Any]]) -> Manifest:
    for path, odd in changes:
        with suppress(LookupError, TypeError, ValueError):  # an earlier change has replaced what is around it
            manifest = replaced(manifest, path, odd)
    return manifest


def replaced(value: Any, path: Path, odd: Any) -> Any:
    """The object with an odd value in this place."""
    if not path:
        return odd
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], odd)
    return copy


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from _paths(part, (*path, key))


class OddServer:
    """Answers lists and watches with what it is given, and every write with what was written."""

    def __init__(self, lists: dict[str, list[Manifest]], events: dict[str, list[Manifest]]) -> None:
        self.lists, self.events = lists, events
        self.singles: dict[str, Manifest] = {}
        """Objects by name that are read one by one."""
        self.version = 1_000_000
        self.dates, self.retries = cycle(DATES), cycle(RETRIES)
        self.fails = sum(map(len, lists.values())) // 50
        """Writes that are refused for a moment."""
        self.writes: list[tuple[str, str, Manifest]] = []
        self.watched: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Collections of which all events are sent."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        answer = await self._answer(request)
        if not answer.prepared:
            answer.headers["Date"] = next(self.dates)
        return answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rpartition("/")[2]
        plural = f"old-{plural}" if "/tensorflow.org/" in request.path else plural
        if request.method != "GET":
            if self.fails:
                self.fails -= 1
                waiting = {"Retry-After": next(self.retries)} if self.fails % 2 else {}
                return web.json_response({"code": 429}, status=429 if waiting else 500, headers=waiting)
            return self._written(request.method, request.path, await request.read())
        if "watch" in request.query:
            return await self._watch(request, plural)
        if plural in self.singles:
            return web.Response(body=msgspec.json.encode(self.singles[plural]))
        if plural not in self.lists:
            return web.json_response({"code": 404, "reason": "NotFound"}, status=404)
        meta = {"resourceVersion": str(self.version)}
        return web.Response(body=msgspec.json.encode({"metadata": meta, "items": self.lists[plural]}))

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Date": next(self.dates)})
        await response.prepare(request)
        events, self.events[plural] = self.events.get(plural, []), []
        for event in events:
            await response.write(msgspec.json.encode(event) + b"\n")
        self.watched[plural].set()
        await asyncio.sleep(600)
        return response

    def _written(self, method: str, path: str, body: bytes) -> web.StreamResponse:
        manifest: Manifest = msgspec.json.decode(body) if body else {}
        self.writes.append((method, path, manifest))
        self.version += 1
        given = manifest.get("metadata") or {}
        meta = {"uid": f"made-{self.version}", **given, "resourceVersion": str(self.version)}
        return web.Response(body=msgspec.json.encode({**manifest, "metadata": meta}))
