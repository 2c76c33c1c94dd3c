"""Bytes into values, however deep; and what can still be said of bytes that become none.

Users nest what they like into fields that a definition preserves, and nobody's object may stop the work on all
others: what cannot be decoded is an error that the caller can catch, and its bytes can be looked at.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from tfyard.kube.errors import Undecodable

T = TypeVar("T")

DEEPEST = 12_000
"""Apiservers refuse JSON of more than 10,000 levels; a list or an event adds two, and callers have frames."""

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Outline(msgspec.Struct, frozen=True):
    """What all objects, lists and (in `object`) events have in common."""

    type: str = ""
    metadata: Meta = Meta()
    object: "Outline | None" = None


_outlines = msgspec.json.Decoder(Outline)


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return _decode(decoder, data)
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise Undecodable(f"an answer cannot be read: {problem}", data) from problem


def outline(data: bytes) -> Outline:
    """Only its first levels are looked at. Undecodable if it is not even JSON."""
    return decode(_outlines, _cut(data, 3))


def name_of(data: bytes) -> str:
    """Of an object or of an event's, for people."""
    try:
        known = outline(data)
    except Undecodable:
        return "something without a name"
    meta = (known.object or known).metadata
    return "/".join(filter(None, (meta.namespace, meta.name))) or "something without a name"


def items(page: bytes) -> Iterator[bytes]:
    """Of a list, each by itself. None is looked into, so that none can do harm."""
    for start, end in _containers(page, 1):
        if page[start : start + 1] == b"[":
            array = page[start:end]
            yield from (array[slice(*span)] for span in _containers(array, 1))


def _decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except RecursionError:
        with _deeper():
            return decoder.decode(data)


@contextmanager
def _deeper() -> Iterator[None]:
    """For the decoder alone, whose levels are small: Python's own at this depth could overrun the stack, which
    ends a process without a word. (From Python 3.12 on, this limit is not the decoder's.)"""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def _cut(data: bytes, depth: int) -> bytes:
    """Without what is nested deeper than that."""
    kept, end = [], 0
    for start, after in _containers(data, depth):
        kept.append(data[end:start])
        end = after
    return b"null".join([*kept, data[end:]])


def _containers(data: bytes, depth: int) -> Iterator[tuple[int, int]]:
    """Where the objects and arrays inside of `depth` others are. It counts, where a parser would descend."""
    level = start = 0
    for token in _TOKENS.finditer(data):
        if token[0] in b"[{":
            start = token.start() if level == depth else start
            level += 1
        elif token[0] in b"]}":
            level -= 1
            if level == depth:
                yield start, token.end()
