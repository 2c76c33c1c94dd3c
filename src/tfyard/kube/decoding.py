"""Decodes answers, however deeply nested, and names objects that cannot be decoded.

Users may nest anything into fields that a CRD preserves, and one object must not stop the work on all others: an
object that cannot be decoded is an error with its bytes, which the caller can catch.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from tfyard.kube.errors import Undecodable
from tfyard.model.corrupt_json import CORRUPT_JSON

T = TypeVar("T")

DEEPEST = 12_000
"""Apiservers refuse JSON with more than 10,000 levels; a list or an event adds two, and callers have frames."""

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]')


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Outline(msgspec.Struct, frozen=True):
    """The common fields of objects, lists and (in `object`) watch events."""

    type: str = ""
    metadata: Meta = Meta()
    object: "Outline | None" = None


_outlines = msgspec.json.Decoder(Outline)


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return _decode(decoder, data)
    except CORRUPT_JSON as problem:
        raise Undecodable(f"cannot decode the answer: {problem}", data) from problem


def outline(data: bytes) -> Outline:
    """The first levels of an answer. Raises Undecodable if it is not even JSON."""
    return decode(_outlines, cut(data, 3))


def name_of(data: bytes) -> str:
    """Name of an object, or of a watch event's object, for messages."""
    try:
        known = outline(data)
    except Undecodable:
        return "an object without a name"
    meta = (known.object or known).metadata
    return "/".join(filter(None, (meta.namespace, meta.name))) or "an object without a name"


def items(page: bytes) -> Iterator[bytes]:
    """The items of a list as bytes; they are not decoded, so that none can fail."""
    for part in parts(page):
        if part.startswith(b"["):
            yield from parts(part)


def parts(data: bytes) -> Iterator[bytes]:
    """The objects and arrays in an object or array, as bytes: of a watch event, the object that it is about."""
    return (data[slice(*span)] for span in _containers(data, 1))


def _decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except RecursionError:
        with _deeper():
            return decoder.decode(data)


@contextmanager
def _deeper() -> Iterator[None]:
    """Raises the recursion limit for the decoder, whose frames are small: Python's own frames at this depth could
    overflow the stack and crash the process. From Python 3.12 on, the decoder has a limit of its
    own, which cannot be raised: some 1,500 levels in 3.12, 10,000 since."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def cut(data: bytes, depth: int) -> bytes:
    """The JSON without everything that is nested deeper than `depth`."""
    kept, end = [], 0
    for start, after in _containers(data, depth):
        kept.append(data[end:start])
        end = after
    return b"null".join([*kept, data[end:]])


def _containers(data: bytes, depth: int) -> Iterator[tuple[int, int]]:
    """Start and end of the objects and arrays that are nested `depth` deep. Counts brackets instead of parsing."""
    level = start = 0
    for token in _TOKENS.finditer(data):
        if token[0] in b"[{":
            start = token.start() if level == depth else start
            level += 1
        elif token[0] in b"]}":
            level -= 1
            if level == depth:
                yield start, token.end()
