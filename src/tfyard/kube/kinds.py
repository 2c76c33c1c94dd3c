"""Decoders for one caller's view of one kind of object, each built when it is first used.

A view is a msgspec Struct with only the fields that its owner reads; others are skipped and never become Python
objects. It must accept every object that the server may hold: fields that users write stay `msgspec.Raw`.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tfyard.kube.errors import ErrorStatus

T = TypeVar("T")


class HasVersion(Protocol):
    @property
    def resource_version(self) -> str: ...


class Versioned(Protocol):
    """A view with a resourceVersion: a watch resumes from the last one."""

    @property
    def metadata(self) -> HasVersion: ...


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    metadata: ListMeta
    items: list[T] | None = None


class Added(msgspec.Struct, Generic[T], frozen=True, tag_field="type", tag="ADDED"):
    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True, tag_field="type", tag="MODIFIED"):
    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True, tag_field="type", tag="DELETED"):
    object: T


class Marked(msgspec.Struct, frozen=True):
    metadata: ListMeta


class Bookmark(msgspec.Struct, frozen=True, tag_field="type", tag="BOOKMARK"):
    """The version up to which nothing happened: it keeps a quiet watch from becoming too old to resume."""

    object: Marked


class Trouble(msgspec.Struct, frozen=True, tag_field="type", tag="ERROR"):
    """An error within a stream that began with 200 OK; 410 mostly comes this way."""

    object: ErrorStatus


class Snapshot(msgspec.Struct, Generic[T], frozen=True):
    """All objects at one moment: the first thing that a watch yields, and the first after a gap."""

    items: list[T]


class Changed(msgspec.Struct, Generic[T], frozen=True):
    object: T


class Removed(msgspec.Struct, Generic[T], frozen=True):
    """The last version of an object that was deleted, or that no longer matches the selector."""

    object: T


Salvage = Callable[[bytes, str], T | None]
"""Makes a view of an object that cannot be decoded, from its bytes and the problem."""


def skip(_data: bytes, _problem: str) -> None:
    """The usual Salvage: nothing is made of the object, and it is skipped."""


class Kind(Generic[T]):
    """The decoders for one view: `Kind(PodView)`. `keep` makes a view independent of the bytes that it was decoded
    from; it is called before more of them are read."""

    def __init__(
        self, view: type[T], keep: Callable[[T], T] = lambda view: view, salvage: Salvage[T] = skip
    ) -> None:
        self.keep, self.salvage = keep, salvage
        self._view: Any = view

    # Each decoder takes a while to build, and most callers need only one.

    @cached_property
    def one(self) -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(self._view)

    @cached_property
    def page(self) -> msgspec.json.Decoder[ListPage[T]]:
        page: Any = ListPage
        return msgspec.json.Decoder(page[self._view])

    @cached_property
    def event(self) -> msgspec.json.Decoder[Added[T] | Modified[T] | Deleted[T] | Bookmark | Trouble]:
        of: Any = self._view
        events: Any = Added[of] | Modified[of] | Deleted[of] | Bookmark | Trouble
        return msgspec.json.Decoder(events)
