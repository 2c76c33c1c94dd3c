"""Tar archives as streams: read member by member as they arrive, written chunk by chunk. Memory stays bounded."""

import tarfile
from collections.abc import AsyncIterator
from typing import BinaryIO

from msgspec import Struct

from tfyard.errors import TfyardError

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
CHUNK = 1 << 16
LONGEST_HEADER = 1 << 20
"""Bytes of one extended header, such as a long name."""


class Broken(TfyardError):
    """The data ended too early, or is no archive."""


class TarMember(Struct, frozen=True, kw_only=True):
    name: str
    size: int
    mode: int = 0o644
    modified: float = 0.0
    link: str = ""
    """The file of the same archive whose content it has, if that is not in the archive twice."""
    is_file: bool = True


class Archive:
    """`async for member in archive.members()`; the content of each is read by `content`, or skipped. One archive
    may follow another, as `xargs tar` makes them."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""
        self._left = self._padding = 0
        self._long: dict[str, str] = {}

    async def members(self) -> AsyncIterator[TarMember]:
        while (header := await self._header()) is not None:
            self._left, self._padding = header.size, -header.size % BLOCK
            if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
                key = "path" if header.type == tarfile.GNUTYPE_LONGNAME else "linkpath"
                self._long[key] = _text((await self._facts()).rstrip(b"\0"))
            elif header.type == tarfile.XHDTYPE:
                self._long |= _pax(await self._facts())
            else:
                member = self._member(header)
                yield member
            await self._skip()

    async def content(self) -> AsyncIterator[bytes]:
        """Content of the present member."""
        while self._left:
            data = await self._some(min(self._left, CHUNK))
            self._left -= len(data)
            yield data

    def _member(self, header: tarfile.TarInfo) -> TarMember:
        long, self._long = self._long, {}
        if "size" in long:  # of more than 8 GB
            self._left = int(long["size"])
            self._padding = -self._left % BLOCK
        return TarMember(
            name=long.get("path", header.name),
            size=self._left,
            mode=header.mode,
            modified=header.mtime,
            link=long.get("linkpath", header.linkname) if header.islnk() else "",
            is_file=header.isreg() or header.islnk(),
        )

    async def _header(self) -> tarfile.TarInfo | None:
        """Next header that is not empty; None at the end."""
        while True:
            block = await self._block()
            if block is None:
                return None
            if block.strip(b"\0"):
                try:
                    return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
                except tarfile.HeaderError as error:
                    raise Broken(f"the archive is damaged: {error}") from None

    async def _block(self) -> bytes | None:
        block = b""
        while len(block) < BLOCK:
            try:
                block += await self._some(BLOCK - len(block))
            except Broken:
                if block:
                    raise
                return None
        return block

    async def _facts(self) -> bytes:
        if self._left > LONGEST_HEADER:
            raise Broken(f"the archive has a header of {self._left:,} bytes")
        return b"".join([data async for data in self.content()])

    async def _skip(self) -> None:
        async for _ in self.content():
            continue
        while self._padding:
            self._padding -= len(await self._some(self._padding))

    async def _some(self, most: int) -> bytes:
        """Reads at least one byte, and at most `most`."""
        while not self._rest:
            try:
                self._rest = await anext(self._chunks)
            except StopAsyncIteration:
                raise Broken("the archive ended too early") from None
        data, self._rest = self._rest[:most], self._rest[most:]
        return data


async def pack(member: TarMember, file: BinaryIO) -> AsyncIterator[bytes]:
    """The member in chunks: as many bytes as its header says, also if the file has changed meanwhile."""
    info = tarfile.TarInfo(member.name)
    info.size, info.mode, info.mtime = member.size, member.mode, int(member.modified)
    yield info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    left = member.size
    while left:
        data = file.read(min(CHUNK, left)) or bytes(min(CHUNK, left))
        left -= len(data)
        yield data
    yield bytes(-member.size % BLOCK)


def _pax(data: bytes) -> dict[str, str]:
    """Records of `LENGTH KEY=VALUE\\n`."""
    fields: dict[str, str] = {}
    while data.strip(b"\0"):
        length, _, _ = data.partition(b" ")
        if not length.isdigit() or not 0 < int(length) <= len(data):
            raise Broken("the archive has a damaged header")
        record, data = data[len(length) + 1 : int(length) - 1], data[int(length) :]
        key, _, value = record.partition(b"=")
        fields[_text(key)] = _text(value)
    return fields


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
