"""Lists whole collections page by page: one answer with 10,000 objects would cost both sides much memory, and so
would one with 500 objects of a megabyte each."""

import logging
from typing import Generic, TypeVar

import msgspec

from tfyard.kube.decoding import decode, items, name_of, outline
from tfyard.kube.errors import Expired, Undecodable
from tfyard.kube.kinds import Kind, ListMeta, ListPage, Versioned
from tfyard.kube.requests import Query, get
from tfyard.kube.transport import Client

T = TypeVar("T", bound=Versioned)

log = logging.getLogger(__name__)

FIRST_PAGE, PAGE = 20, 500
"""Number of objects in the first page, and in any page at most."""
PAGE_BYTES = 4 << 20
"""Size that a page should have: how many objects are asked for follows from the size of those before."""


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """All objects at one moment; a watch continues from `resource_version`."""

    items: list[T]
    resource_version: str


async def list_all(
    client: Client, kind: Kind[T], path: str, query: Query | None = None, page: int = PAGE
) -> Listing[T]:
    """A whole collection at one moment. If the server compacts that away meanwhile (410), begins again, once."""
    first = {**(query or {}), "limit": str(min(page, FIRST_PAGE))}
    try:
        return await _pages(client, kind, path, first, page)
    except Expired:
        return await _pages(client, kind, path, first, page)


async def _pages(client: Client, kind: Kind[T], path: str, query: dict[str, str], most: int) -> Listing[T]:
    objects: list[T] = []
    while True:
        async with client.pages:
            answer = await client.read(get(path, query))
            page = _decode(kind, answer)
            objects += map(kind.keep, page.items or [])
        if not page.metadata.continue_:
            return Listing(objects, page.metadata.resource_version)
        limit = max(1, min(most, PAGE_BYTES * len(page.items or [1]) // len(answer)))
        query = {**query, "continue": page.metadata.continue_, "limit": str(limit)}


def _decode(kind: Kind[T], answer: bytes) -> ListPage[T]:
    try:
        return decode(kind.page, answer)
    except Undecodable:
        meta = outline(answer).metadata
        if not meta.resource_version:
            raise  # no list at all: it must not count as an empty one
        return ListPage(ListMeta(meta.resource_version, meta.continue_), _readable(kind, answer))


def _readable(kind: Kind[T], answer: bytes) -> list[T]:
    """The objects of a list, each decoded by itself: one that cannot be decoded must not hide all others."""
    return [view for item in items(answer) if (view := read(kind, item)) is not None]


def read(kind: Kind[T], data: bytes) -> T | None:
    """One object; what is salvaged of it if it cannot be decoded; None: it is skipped, and logged."""
    try:
        return decode(kind.one, data)
    except Undecodable as problem:
        salvaged = kind.salvage(data, problem.detail)
        if salvaged is None:
            log.warning("skipped %s: %s", name_of(data), problem)
        return salvaged
