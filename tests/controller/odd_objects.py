"""Objects with one odd value each, at the edges of its type or of another type, and a server that has them."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
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
        self.writes: list[tuple[str, str, Manifest]] = []
        self.watched: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Collections of which all events are sent."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rpartition("/")[2]
        plural = f"old-{plural}" if "/tensorflow.org/" in request.path else plural
        if request.method != "GET":
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
        response = web.StreamResponse()
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
