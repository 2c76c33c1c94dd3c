"""Files as one byte-stable archive. It is a stream, so its size does not matter."""

import io
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from .options import CodeFile

_BLOCK = 512
_TIME = 315_619_200
"""Modification time of every file: 1980-01-02. Programs may zip their code, and zip has no times before 1980."""


class ArchiveFile(Struct, frozen=True):
    path: str
    size: int
    executable: bool
    data: Iterable[bytes]


def tar(members: Iterable[ArchiveFile]) -> Iterator[bytes]:
    """A tar archive without owners, in GNU's format: busybox supports no other for long names."""
    for member in members:
        head = tarfile.TarInfo(member.path)
        head.size, head.mode = member.size, 0o755 if member.executable else 0o644
        head.mtime = _TIME
        yield head.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        yield from member.data
        yield bytes(-member.size % _BLOCK)
    yield bytes(2 * _BLOCK)


def gzip(parts: Iterable[bytes], level: int = 9) -> Iterator[bytes]:
    """gzip with a fixed header, because Python's differs between versions."""
    deflate, check, size = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS), 0, 0
    yield b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    for part in parts:
        check, size = zlib.crc32(part, check), size + len(part)
        if packed := deflate.compress(part):
            yield packed
    yield deflate.flush() + struct.pack("<LL", check, size & 0xFFFFFFFF)


def unpack(packed: bytes) -> list[CodeFile]:
    """The files of an archive that fits into memory."""
    files = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        for entry in opened:
            if data := opened.extractfile(entry):
                files.append(CodeFile(entry.name, data.read(), bool(entry.mode & 0o100)))
    return files
