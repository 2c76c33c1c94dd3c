"""A container's log as `kubectl logs` requests it: from where, how much, with times, and as it grows."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime

from msgspec import Struct

from tfyard.kubelet.runtime import LogSource
from tfyard.node.log_limits import LogTimes
from tfyard.node.log_times import SECOND, first_data, rfc3339
from tfyard.node.logs import first_line, line_start, start_of_last

CHUNK = 1 << 18
LONGEST_LINE = 1 << 20
"""Bytes that are kept in memory of a line that has no end yet."""
PAUSE = 0.1


class LogOptions(Struct, frozen=True, rename="camel"):
    """The query parameters of Kubernetes' PodLogOptions that reach a kubelet."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None

    def since(self) -> int | None:
        """Time in nanoseconds from which on lines are requested; None: all."""
        if self.since_seconds is not None:
            return time.time_ns() - self.since_seconds * SECOND
        return None if self.since_time is None else int(self.since_time.timestamp()) * SECOND


async def stream(source: LogSource, options: LogOptions, pause: float = PAUSE) -> AsyncGenerator[bytes, None]:
    """The log as it is now; with `follow`, until the container has ended. To be used with `aclosing`."""
    left = options.limit_bytes
    async with aclosing(ContainerLogReader(source, options).read(pause)) as parts:
        async for data in parts:
            yield data[:left]
            left = None if left is None else left - len(data)
            if left is not None and left <= 0:
                return


class ContainerLogReader:
    def __init__(self, source: LogSource, options: LogOptions) -> None:
        self._source, self._options = source, options
        self._times = LogTimes(source.path)
        self._descriptor: int | None = None
        self._at = 0
        """Offset up to which the file was read. With times, output ends at `_stamped`, and `_line` follows."""
        self._stamped, self._line = 0, b""
        self._is_cut = False
        """Whether the last output has no end of line."""

    async def read(self, pause: float = PAUSE) -> AsyncGenerator[bytes, None]:
        last = None if self._options.follow else self._times.notice()
        try:
            while True:
                is_over = self._source.is_over()
                size = self._times.notice() if last is None else last
                if data := self._next(size):
                    yield data
                elif is_over or last is not None:
                    break
                else:
                    await asyncio.sleep(pause)
            if is_over and self._line:
                yield self._stamp(self._line)
        finally:
            if self._descriptor is not None:
                os.close(self._descriptor)

    def _next(self, size: int) -> bytes:
        """The next part that can be written: whole lines where they have times."""
        while data := self._pread(size):
            if not self._options.timestamps:
                return data
            data = self._line + data
            end = data.rfind(b"\n") + 1 or (len(data) if len(data) > LONGEST_LINE else 0)
            whole, self._line = data[:end], data[end:]
            if whole:
                return self._stamp(whole)
        return b""

    def _pread(self, size: int) -> bytes:
        """The next bytes. Those that were freed meanwhile are skipped, with the rest of that line."""
        if size == 0 or (self._descriptor is None and not self._open(size)):
            return b""
        assert self._descriptor is not None
        if self._at < size and first_data(self._descriptor, self._at) > self._at:
            self._at = self._stamped = first_line(self._descriptor, self._at, size)
            self._line = b""
        data = os.pread(self._descriptor, min(CHUNK, max(0, size - self._at)), self._at)
        self._at += len(data)
        return data

    def _open(self, size: int) -> bool:
        try:
            self._descriptor = os.open(self._source.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        first = first_line(self._descriptor, 0, size)
        self._at = first
        if self._options.tail_lines is not None:
            self._at = start_of_last(self._descriptor, (first, size), self._options.tail_lines)
        if (since := self._options.since()) is not None:
            self._at = max(self._at, line_start(self._descriptor, first, self._times.since(since)))
        self._stamped = self._at
        return True

    def _stamp(self, data: bytes) -> bytes:
        """Lines with their times; many lines share a record."""
        stamped = b""
        while data:
            first_end = data.find(b"\n") + 1 or len(data)
            size, written = self._times.covering(self._stamped + first_end)
            end = data.rfind(b"\n", 0, size - self._stamped) + 1 or len(data)
            lines, data = data[:end], data[end:]
            prefix = f"{rfc3339(written)} ".encode()
            stamped += b"" if self._is_cut else prefix
            stamped += lines[:-1].replace(b"\n", b"\n" + prefix) + lines[-1:]
            self._stamped += end
            self._is_cut = not lines.endswith(b"\n")
        return stamped
