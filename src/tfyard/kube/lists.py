"""Lists whole collections page by page: one answer with 10,000 objects costs the server and us its memory."""

import logging
from typing import Generic, TypeVar

import msgspec

from tfyard.kube.decoding import decode, items, name_of, outline
from tfyard.kube.errors import Expired, Undecodable
from tfyard.kube.kinds import Kind, ListMeta, Page, Versioned
from tfyard.kube.requests import Query, Request, get
from tfyard.kube.transport import Client

T = TypeVar("T", bound=Versioned)

log = logging.getLogger(__name__)

PAGE = 500


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """All of it at one moment; a watch goes on from `resource_version`."""

    items: list[T]
    resource_version: str


async def list_all(
    client: Client, kind: Kind[T], path: str, query: Query | None = None, page: int = PAGE
) -> Listing[T]:
    """All pages see the same moment. If the server compacts it away meanwhile (410), ask for all at once."""
    try:
        return await _pages(client, kind, path, {**(query or {}), "limit": str(page)})
    except Expired:
        return await _pages(client, kind, path, dict(query or {}))


async def _pages(client: Client, kind: Kind[T], path: str, query: dict[str, str]) -> Listing[T]:
    found: list[T] = []
    while True:
        page = await _page(client, kind, get(path, query))
        found += page.items or []
        if not page.metadata.continue_:
            return Listing(found, page.metadata.resource_version)
        query = {**query, "continue": page.metadata.continue_}


async def _page(client: Client, kind: Kind[T], request: Request) -> Page[T]:
    try:
        return await client.send(request, kind.page)
    except Undecodable as problem:
        meta = outline(problem.answer).metadata
        if not meta.resource_version:
            raise  # not a list at all, and must not be taken for an empty one
        return Page(ListMeta(meta.resource_version, meta.continue_), _readable(kind, problem.answer))


def _readable(kind: Kind[T], answer: bytes) -> list[T]:
    """Without the objects that cannot be read: one of them must not hide all others."""
    readable: list[T] = []
    for item in items(answer):
        try:
            readable.append(decode(kind.one, item))
        except Undecodable as problem:
            log.warning("skipped %s in a list: %s", name_of(item), problem)
    return readable
