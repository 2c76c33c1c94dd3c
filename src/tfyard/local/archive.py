"""Code from an http(s) address: downloads an archive and unpacks it.

The archive is not trusted: its size, its number of files and their paths are limited.
"""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import IO, Self, TypeVar
from urllib.request import urlopen

from tfyard.errors import Usage
from tfyard.render.code import MAX_FILES, MAX_UNPACKED

T = TypeVar("T")
MAX_DOWNLOAD = 1 << 30
MAX_HEADER = 1 << 20
"""Bytes of one extended header, such as a long name: tarfile reads it into memory."""
_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_UNUSABLE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,  # the archive is truncated
    OSError,  # a damaged .gz or .bz2, a name that is too long
    RuntimeError,  # a password is needed, or the compression is not supported
    ValueError,  # names that cannot be decoded
)


def fetch(address: str, target: Path) -> None:
    """Downloads and unpacks the archive into the new folder `target`."""
    archive, folder = target.with_suffix(".archive"), target.with_suffix(".new")
    try:
        _download(address, archive)
        folder.mkdir()
        _unpack(archive, folder, address)
        inside = list(folder.iterdir())  # archives of repositories hold one folder with everything in it
        (inside[0] if len(inside) == 1 and inside[0].is_dir() else folder).rename(target)
    finally:
        archive.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _download(address: str, archive: Path) -> None:
    try:
        with urlopen(address, timeout=60) as answer, archive.open("wb") as file:
            _copy(answer, file, address)
    except (OSError, ValueError, HTTPException) as error:
        raise Usage(f"code: {address}: {error}") from None


def _copy(answer: IO[bytes], file: IO[bytes], address: str) -> None:
    while chunk := answer.read(1 << 20):
        if file.tell() + len(chunk) > MAX_DOWNLOAD:
            raise Usage(f"code: {address} has more than {MAX_DOWNLOAD:,} bytes, the most that is fetched")
        file.write(chunk)


def _unpack(archive: Path, folder: Path, address: str) -> None:
    """Refuses members that would be written outside of the folder (`../`, absolute paths, links)."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                file.extractall(folder, _limited(file.infolist(), "file_size"))  # drops `..` and roots
        else:
            with tarfile.open(archive, tarinfo=_Member) as tar:
                tar.extractall(folder, _limited(tar, "size"), filter="data")
    except _UNUSABLE as error:
        raise Usage(f"code: {address} is not a usable .zip or .tar archive: {error}") from None


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header of {member.size:,} bytes; at most {MAX_HEADER:,} are allowed")
        return member


def _limited(members: Iterable[T], size: str) -> Iterator[T]:
    """Yields member after member, so that nothing beyond the limits is unpacked or even decompressed."""
    total = 0
    for count, member in enumerate(members, 1):
        total += getattr(member, size)
        if count > MAX_FILES:
            raise tarfile.ReadError(f"it has more than {MAX_FILES:,} files")
        if total > MAX_UNPACKED:
            raise tarfile.ReadError(f"unpacked, it has more than {MAX_UNPACKED:,} bytes")
        yield member
