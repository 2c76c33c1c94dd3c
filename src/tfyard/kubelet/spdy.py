"""The little of SPDY/3.1 that kubectl's port-forward uses: frames from bytes, and frames to bytes. Pure.

A frame has a header of eight bytes. The first bit tells control frames from data; the last three bytes are the
length of what follows. Header blocks are compressed by one zlib stream per direction, which starts with a
dictionary that the protocol fixes. There is no flow control: kubectl's library has none.
"""

import zlib
from collections.abc import Iterator

from msgspec import Struct

from tfyard.errors import TfyardError

CONTROL, VERSION = 0x8000, 3
SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1
HEADER = 8
BIGGEST_CONTROL, BIGGEST_HEADERS = 1 << 16, 1 << 16

WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age"
    " allow authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _text(text: str) -> bytes:
    return len(text).to_bytes(4) + text.encode()


DICTIONARY = b"".join(_text(word.replace("_", " ")) for word in WORDS.split()) + REST.encode()


class BadFrame(TfyardError):
    """The other side does not speak SPDY/3."""


class SynStream(Struct, frozen=True):
    """The other side opens a stream."""

    stream: int
    headers: dict[str, str]


class Data(Struct, frozen=True):
    stream: int
    data: bytes
    is_last: bool


class Reset(Struct, frozen=True):
    """The other side gives up a stream."""

    stream: int


class Ping(Struct, frozen=True):
    number: int


Frame = SynStream | Data | Reset | Ping


class FrameDecoder:
    """Turns bytes into whole frames. Frames that need no answer (SETTINGS, GOAWAY) are skipped."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        while len(self._buffer) >= HEADER:
            end = HEADER + int.from_bytes(self._buffer[5:HEADER])
            is_control = bool(self._buffer[0] & 0x80)
            if is_control and end > BIGGEST_CONTROL:
                raise BadFrame(f"a control frame of {end} bytes")
            if len(self._buffer) < end:
                return
            head, body = bytes(self._buffer[:HEADER]), bytes(self._buffer[HEADER:end])
            del self._buffer[:end]
            frame = self._control(head, body) if is_control else _data(head, body)
            if frame is not None:
                yield frame

    def _control(self, head: bytes, body: bytes) -> Frame | None:
        version, kind = int.from_bytes(head[:2]) & ~CONTROL, int.from_bytes(head[2:4])
        if version != VERSION:
            raise BadFrame(f"SPDY version {version}, not {VERSION}")
        first = int.from_bytes(body[:4])
        if kind == SYN_STREAM:
            return SynStream(first, self._headers(body[10:]))
        if kind == RST_STREAM:
            return Reset(first)
        return Ping(first) if kind == PING else None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, BIGGEST_HEADERS)
        except zlib.error as error:
            raise BadFrame(f"headers cannot be decompressed: {error}") from None
        if self._inflate.unconsumed_tail:
            raise BadFrame(f"more than {BIGGEST_HEADERS} bytes of headers")
        texts = list(_texts(plain[4:]))
        return dict(zip(texts[::2], texts[1::2], strict=False))


class Encoder:
    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream, without headers of our own."""
        block = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(SYN_REPLY, stream.to_bytes(4) + block)

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        return stream.to_bytes(4) + bytes([FIN if is_last else 0]) + len(data).to_bytes(3) + data

    def ping(self, number: int) -> bytes:
        return _control(PING, number.to_bytes(4))


def _data(head: bytes, body: bytes) -> Data:
    return Data(int.from_bytes(head[:4]), body, bool(head[4] & FIN))


def _control(kind: int, body: bytes) -> bytes:
    return (CONTROL | VERSION).to_bytes(2) + kind.to_bytes(2) + len(body).to_bytes(4) + body


def _texts(plain: bytes) -> Iterator[str]:
    at = 0
    while at < len(plain):
        end = at + 4 + int.from_bytes(plain[at : at + 4])
        yield plain[at + 4 : end].decode("utf-8", "replace")
        at = end
