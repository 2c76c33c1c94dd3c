"""Whole collections, page by page: one answer with 10,000 objects would cost the server and us its memory."""

from typing import Generic, TypeVar

import msgspec

from tfyard.kube.errors import Expired
from tfyard.kube.kinds import Kind, Page, Versioned
from tfyard.kube.requests import Query, get
from tfyard.kube.transport import Client

T = TypeVar("T", bound=Versioned)

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
    items: list[T] = []
    while True:
        page: Page[T] = await client.send(get(path, query), kind.page)
        items += page.items or []
        if not page.metadata.continue_:
            return Listing(items, page.metadata.resource_version)
        query = {**query, "continue": page.metadata.continue_}
