"""Deeply nested objects, and objects that cannot be decoded: one never hides the others."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from tests.kube.answers import answering
from tfyard import kube
from tfyard.kube import Access, Changed, Client, Kind, Snapshot, Undecodable, WatchOptions
from tfyard.kube.decoding import decode, items, name_of, outline
from tfyard.model.backoff import Backoff

DEEP = 1_000 if sys.version_info[:2] == (3, 12) else 9_000
"""Levels of nesting; a server stores up to 10,000, and Python 3.12 follows no more than 1,500."""
BOTTOMLESS = 100_000
"""Levels of nesting that no decoder follows, for objects that cannot be decoded."""


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")


KIND = Kind(Thing)
HASTY = WatchOptions(backoff=Backoff(first=0.01, longest=0.05, jitter=0.5))


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b'"]}\\""' + b"}" * levels


def thing(name: str, levels: int = 1, version: int = 1) -> bytes:
    meta = b'{"name":"%s","namespace":"here","resourceVersion":"%d","labels":{"b":"}"}}' % (
        name.encode(),
        version,
    )
    return b'{"kind":"Thing","metadata":%s,"spec":%s}' % (meta, nested(levels))


def page(*things: bytes) -> bytes:
    return b'{"kind":"ThingList","metadata":{"resourceVersion":"7"},"items":[%s]}' % b",".join(things)


def event(type_: str, of: bytes) -> bytes:
    return b'{"type":"%s","object":%s}' % (type_.encode(), of)


def test_whatever_a_server_can_store_is_decoded_and_the_limit_is_as_before() -> None:
    usual = sys.getrecursionlimit()
    assert bytes(decode(KIND.one, thing("deep", DEEP)).spec) == nested(DEEP)
    assert decode(KIND.event, event("ADDED", thing("deep", DEEP))).object.metadata == Meta("deep", "1")
    assert len(decode(KIND.page, page(thing("deep", DEEP), thing("flat"))).items or []) == 2
    assert sys.getrecursionlimit() == usual


def test_what_cannot_be_decoded_still_has_a_name_and_a_version() -> None:
    bottomless = thing("abyss", BOTTOMLESS, version=5)
    with pytest.raises(Undecodable) as problem:
        decode(KIND.one, bottomless)
    assert problem.value.answer is bottomless
    known = outline(event("ADDED", bottomless))
    assert known.object is not None
    assert (known.type, known.object.metadata.resource_version) == ("ADDED", "5")
    assert name_of(event("ADDED", bottomless)) == name_of(bottomless) == "here/abyss"
    assert name_of(b"<html>") == "an object without a name"


def test_a_list_is_taken_apart_without_being_looked_into() -> None:
    parts = [thing("a"), thing("abyss", BOTTOMLESS), thing("b")]
    assert list(items(page(*parts))) == parts
    assert list(items(page())) == []
    assert outline(page(*parts)).metadata.resource_version == "7"


class Server:
    """A server with one collection: its list, and the first events of its watch."""

    def __init__(self, *answers: bytes, then: tuple[bytes, ...] = ()) -> None:
        self.lists, self.then, self.watched_from = list(answers), list(then), list[str]()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=self.lists.pop(0) if len(self.lists) > 1 else self.lists[0])
        self.watched_from.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        while self.then:
            await response.write(self.then.pop(0) + b"\n")
        await asyncio.sleep(0.05)
        return response


@asynccontextmanager
async def watching(
    server: Server,
) -> AsyncIterator[AsyncIterator[kube.Snapshot[Thing] | Changed[Thing] | object]]:
    async with answering(server) as cluster, Client(Access(cluster)) as client, asyncio.timeout(90):
        yield kube.watch(client, KIND, "/things", None, HASTY)


async def test_one_object_that_cannot_be_read_is_left_out_of_a_list_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(page(thing("a"), thing("abyss", BOTTOMLESS), thing("b")))
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        with caplog.at_level(logging.WARNING):
            listing = await kube.list_all(client, KIND, "/things")
    assert [item.metadata.name for item in listing.items] == ["a", "b"]
    assert listing.resource_version == "7"
    assert "skipped here/abyss:" in caplog.text


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b"[]", page(thing("a"))[:-9]])
async def test_an_answer_that_is_no_list_is_an_error_and_not_an_empty_list(answer: bytes) -> None:
    async with answering(Server(answer)) as cluster, Client(Access(cluster)) as client:
        with pytest.raises(Undecodable):
            await kube.list_all(client, KIND, "/things")


async def test_one_event_that_cannot_be_read_is_passed_over_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = (event("ADDED", thing("abyss", BOTTOMLESS, 8)), event("ADDED", thing("b", 1, 9)))
    server = Server(page(), then=events)
    async with watching(server) as news:
        assert await anext(news) == Snapshot([])
        change = await anext(news)
    assert isinstance(change, Changed)
    assert change.object.metadata.name == "b"
    assert "skipped here/abyss:" in caplog.text


async def test_a_watch_goes_on_behind_an_event_that_cannot_be_read() -> None:
    server = Server(page(), then=(event("ADDED", thing("abyss", BOTTOMLESS, 8)),))
    async with watching(server) as news:
        await anext(news)
        following = asyncio.ensure_future(anext(news))
        while len(server.watched_from) < 2:
            await asyncio.sleep(0.01)
        following.cancel()
    assert server.watched_from[:2] == ["7", "8"]


@pytest.mark.parametrize("line", [event("DELETED", thing("abyss", BOTTOMLESS, 8)), b"<html>", b"{}"])
async def test_a_removal_or_a_line_that_cannot_be_read_costs_a_new_list(line: bytes) -> None:
    server = Server(page(thing("abyss")), page(), then=(line,))
    async with watching(server) as news:
        first, second = await anext(news), await anext(news)
    assert isinstance(first, Snapshot)
    assert len(first.items) == 1
    assert second == Snapshot([])
