"""Log files as they grow. Containers never wait for a follower. One for a screen that is too slow skips lines,
and says how many; the file has them all."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tfyard.logs.terminal_text import LONGEST_LINE, SCREEN_LINE, clean, clean_lines, last_state, plain_lines
from tfyard.node.log_times import first_data

CHUNK = 1 << 15
"""Bytes per read; larger reads take longer in all, because memory must be allocated for each of their copies."""
SEARCHED = 1 << 18
"""Bytes that are searched at once for the beginning of a line."""
BEHIND = 1 << 18
"""Unread bytes above which a log is a flood. A follower for a screen jumps to its end: no user reads that fast."""
TAIL_BYTES, TAIL_LINES = 2_048, 80
"""Bytes and lines that a kubelet keeps of a failed container's log."""


class WrittenLines(Struct, frozen=True):
    """One or more whole lines, without the last line break."""

    source: str
    text: str
    is_flood: bool = False
    """Whether more than BEHIND bytes were unread."""


class UnfinishedLine(Struct, frozen=True):
    """A line that has no end yet, as a terminal would show it now: a progress bar, for example."""

    source: str
    text: str
    is_rewritten: bool
    """Whether `\\r` came before: the text is a whole state, not the beginning of one."""


class SkippedLines(Struct, frozen=True):
    source: str
    lines: int


LogPart = WrittenLines | UnfinishedLine | SkippedLines


class LogFileFollower:
    """One file, read as it grows, in bounded steps and with a bounded memory. `for_screen`: lines may be skipped
    if there are more than a person could read, and long ones are cut."""

    def __init__(self, source: str, path: Path, *, for_screen: bool = False, offset: int = 0) -> None:
        self.source, self.path, self.offset = source, path, offset
        self._for_screen = for_screen
        self._longest = SCREEN_LINE if for_screen else LONGEST_LINE
        self._kept = 4 * self._longest  # bytes of a character
        self._partial = b""
        self._is_rewritten = False
        self._shown = b""
        self.begun = b""
        """The line that the program has begun, as far as it is known; logs have only whole lines."""
        self._descriptor: int | None = None

    def read(self, end: int = sys.maxsize) -> Iterator[LogPart]:
        """New output since the last call, up to this offset, and at most one chunk, so that other logs are read in
        between."""
        behind = self._behind(end)
        if behind > BEHIND and self._for_screen and (count := self._skip(behind - CHUNK)):
            yield SkippedLines(self.source, count)
        if behind:
            assert self._descriptor is not None
            data = os.pread(self._descriptor, min(CHUNK, behind), self.offset)
            self.offset += len(data)
            yield from self._split(data, is_flood=behind > BEHIND)
        begun = self._partial or self.begun
        if behind <= CHUNK and begun != self._shown:  # else the end of the line may be there already
            self._shown = begun
            is_rewritten = self._is_rewritten or b"\r" in begun
            yield UnfinishedLine(self.source, clean(begun, self._longest), is_rewritten)

    @property
    def is_behind(self) -> bool:
        """Whether to read on at once. A follower for a screen can wait for the end of a flood: it jumps there."""
        return 0 < self._behind() <= (BEHIND if self._for_screen else sys.maxsize)

    def close(self, end: int = sys.maxsize) -> Iterator[LogPart]:
        """Remaining output, including a last line without a line break."""
        while self._behind(end):
            yield from self.read(end)
        if self._partial:
            yield WrittenLines(self.source, clean(self._partial, self._longest))
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._partial, self._descriptor = b"", None

    def _behind(self, end: int = sys.maxsize) -> int:
        if self._descriptor is None and not self._open():
            return 0
        assert self._descriptor is not None
        return max(0, min(os.fstat(self._descriptor).st_size, end) - self.offset)

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def _skip(self, size: int) -> int:
        """Skip so many bytes and the rest of that line; returns how many lines those were."""
        assert self._descriptor is not None
        count, end = 0, self.offset + size
        while self.offset < end:
            data = os.pread(self._descriptor, min(CHUNK, end - self.offset), self.offset)
            count += data.count(b"\n")
            self.offset += len(data)
        data = os.pread(self._descriptor, CHUNK, self.offset)
        length = data.find(b"\n") + 1
        self.offset += length
        self._partial, self._is_rewritten = b"", False
        return count + (1 if length else 0)

    def _split(self, data: bytes, *, is_flood: bool) -> Iterator[WrittenLines]:
        end = data.rfind(b"\n")
        begun = data[end + 1 :]
        if end >= 0:
            whole = self._partial + data[:end]
            yield WrittenLines(self.source, clean_lines(whole, self._longest), is_flood)
            if self.begun == self._shown or self.begun in whole:
                self.begun = b""  # it has ended; what has begun since is still to be said
            self._is_rewritten, self._shown = False, b""
        elif len(self._partial) == self._kept and b"\r" not in begun:
            return
        else:
            begun = self._partial + begun
        self._is_rewritten = self._is_rewritten or b"\r" in begun
        # Bytes beyond the longest line and earlier states of a progress bar are never shown, so they are not kept.
        self._partial = last_state(begun)[: self._kept]


def tail(path: Path, size: int = TAIL_BYTES, most: int = TAIL_LINES) -> str:
    """The end of a log; by default as much as the kubelet reports for a container that failed."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            data = file.read()
    except FileNotFoundError:
        return ""
    return "\n".join(plain_lines(data, SCREEN_LINE)[-most:]).strip()


def first_line(descriptor: int, offset: int, size: int) -> int:
    """The start of the first line from here on that was not freed in part."""
    at = first_data(descriptor, offset)
    if at == offset:
        return offset
    while at < size:
        data = os.pread(descriptor, SEARCHED, at)
        if (end := data.find(b"\n")) >= 0:
            return at + end + 1
        at += len(data)
    return size


def line_start(descriptor: int, first: int, offset: int) -> int:
    """The start of the line that the byte at this offset belongs to."""
    while offset > first:
        start = max(first, offset - SEARCHED)
        if (end := os.pread(descriptor, offset - start, start).rfind(b"\n")) >= 0:
            return start + end + 1
        offset = start
    return first


def start_of_last(descriptor: int, part: tuple[int, int], lines: int) -> int:
    """The start of the last lines in this part of the file; an unfinished line counts."""
    first, at = part
    if lines == 0 or at == first:
        return at
    missing = lines + (os.pread(descriptor, 1, at - 1) == b"\n")
    while at > first:
        start = max(first, at - SEARCHED)
        data = os.pread(descriptor, at - start, start)
        count = data.count(b"\n")
        if count >= missing:
            at = len(data)
            for _ in range(missing):
                at = data.rfind(b"\n", 0, at)
            return start + at + 1
        missing, at = missing - count, start
    return first
