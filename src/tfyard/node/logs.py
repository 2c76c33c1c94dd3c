"""Log files, followed. Containers write to them directly, so nothing is lost if we die, and they never wait for
us: a follower that is too slow skips lines, and says how many; the file has them all."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

CHUNK = 1 << 18
BEHIND = 1 << 20
"""Bytes; a follower that is further behind jumps to the end: nobody reads that fast."""
LONGEST_LINE = 4_000
TAIL_BYTES, TAIL_LINES = 2_048, 80
"""As much as the kubelet keeps of a failed container's log."""

# Cursor movements and the like would garble the screen; colours (…m) stay.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b[^\[]|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\x80-\x9f]")


class Line(Struct, frozen=True):
    source: str
    text: str


class Skipped(Struct, frozen=True):
    source: str
    lines: int


class Follower:
    """One file, read as it grows, in bounded steps and with a bounded memory."""

    def __init__(self, source: str, path: Path) -> None:
        self.source, self.path = source, path
        self._offset = 0
        self._partial = b""
        self._descriptor: int | None = None

    def read(self) -> Iterator[Line | Skipped]:
        """What is new since the last call, up to one chunk, so that other logs are read in between."""
        behind = self._behind()
        if behind > BEHIND:
            yield Skipped(self.source, self._skip(behind - CHUNK))
        if behind:
            assert self._descriptor is not None
            data = os.pread(self._descriptor, CHUNK, self._offset)
            self._offset += len(data)
            yield from self._lines(data)

    def close(self) -> Iterator[Line | Skipped]:
        """The rest, including a last line without a line break."""
        while self._behind():
            yield from self.read()
        if self._partial:
            yield Line(self.source, clean(self._partial))
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._partial, self._descriptor = b"", None

    def _behind(self) -> int:
        if self._descriptor is None and not self._open():
            return 0
        assert self._descriptor is not None
        return os.fstat(self._descriptor).st_size - self._offset

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def _skip(self, size: int) -> int:
        """Skip so many bytes and the rest of that line; returns how many lines those were."""
        assert self._descriptor is not None
        count, end = 0, self._offset + size
        while self._offset < end:
            data = os.pread(self._descriptor, min(CHUNK, end - self._offset), self._offset)
            count += data.count(b"\n")
            self._offset += len(data)
        data = os.pread(self._descriptor, CHUNK, self._offset)
        rest = data.find(b"\n") + 1
        self._offset += rest
        self._partial = b""
        return count + (1 if rest else 0)

    def _lines(self, data: bytes) -> Iterator[Line]:
        *lines, rest = data.split(b"\n")
        for line in lines:
            yield Line(self.source, clean(self._partial + line))
            self._partial = b""
        # What is never shown is not kept: what is beyond the longest line, and earlier states of a progress bar.
        self._partial = _last_state(self._partial + rest)[: 4 * LONGEST_LINE]


def clean(line: bytes) -> str:
    """A line as a terminal may show it. A progress bar rewrites its line by `\\r`: the last state is shown."""
    text = _CONTROL.sub("", _last_state(line)[: 4 * LONGEST_LINE].decode("utf-8", "replace"))
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}… (the line goes on)"


def _last_state(line: bytes) -> bytes:
    return line[line.rstrip(b"\r").rfind(b"\r") + 1 :]


def tail(path: Path) -> str:
    """The end of a log, as the kubelet reports it for a container that failed."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            data = file.read()
    except FileNotFoundError:
        return ""
    lines = [clean(line) for line in data.splitlines()]
    return "\n".join(lines[-TAIL_LINES:]).strip()
