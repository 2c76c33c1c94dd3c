"""Decoders for one caller's view of one kind of object, built once.

A view is a msgspec Struct with only the fields its owner reads; the rest is skipped without becoming Python
objects. It must accept every object that the server may hold: keep what users write as `msgspec.Raw`.
"""

from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tfyard.kube.errors import Status

T = TypeVar("T")


class HasVersion(Protocol):
    @property
    def resource_version(self) -> str: ...


class Versioned(Protocol):
    """A watch resumes from the last resourceVersion, so every view must have one."""

    @property
    def metadata(self) -> HasVersion: ...


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True):
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
    """Nothing happened up to this version: it keeps a quiet watch from becoming too old to resume."""

    object: Marked


class Trouble(msgspec.Struct, frozen=True, tag_field="type", tag="ERROR"):
    """A stream that began with 200 OK reports errors in-band; 410 mostly comes this way."""

    object: Status


class Snapshot(msgspec.Struct, Generic[T], frozen=True):
    """What a watch tells its caller: all that there is now ..."""

    items: list[T]


class Changed(msgspec.Struct, Generic[T], frozen=True):
    object: T


class Removed(msgspec.Struct, Generic[T], frozen=True):
    """... and then each change. The object as it was last; it may also have stopped matching the selector."""

    object: T


class Kind(Generic[T]):
    """The decoders for one view: `Kind(PodView)`."""

    def __init__(self, view: type[T]) -> None:
        of: Any = view
        events: Any = Added[of] | Modified[of] | Deleted[of] | Bookmark | Trouble
        self.one: msgspec.json.Decoder[T] = msgspec.json.Decoder(of)
        self.page: msgspec.json.Decoder[Page[T]] = msgspec.json.Decoder(Page[of])
        self.event: msgspec.json.Decoder[Added[T] | Modified[T] | Deleted[T] | Bookmark | Trouble] = (
            msgspec.json.Decoder(events)
        )
