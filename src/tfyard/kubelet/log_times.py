"""When each part of a container's log was written, and which part is still kept.

Containers write straight to their log files, so their lines carry no times. An index beside each log has a record
for each growth that was noticed: how long the log was, and when it was last written. The time of a line is that of
the first record that covers its end. Records are only added, so it stays the same for every later reader.

A log without end is limited as a kubelet's log rotation does it. Its oldest parts are freed by punching a hole
into the file, because then all offsets stay valid: for the container, which goes on writing, and for the index.
"""

import asyncio
import ctypes
import errno
import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

PART, PARTS = 10 << 20, 5
"""Kubelets rotate logs at 10 MiB and keep five files."""
MOST_RECORDS = 1 << 18
PERIOD = 0.2
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.ENOENT)
"""A full disk, or a folder that is being removed: logs can still be read, with times that are not kept."""
RECORD = struct.Struct("<QQ")
SECOND = 10**9
PUNCH_HOLE = 0x02 | 0x01  # the size of the file stays the same
_libc = ctypes.CDLL(None, use_errno=True)


class LogTimes:
    """The index of one log. Several objects may use the same index, in one thread."""

    def __init__(self, log: Path) -> None:
        self.log, self.index = log, log.with_name(f"{log.name}.times")
        self._sizes, self._times = array("Q"), array("Q")
        self._position = self._size = self._freed = 0

    def notice(self) -> int:
        """Record how long the log is now, free what is too old, and return the length."""
        try:
            found = self.log.stat()
        except FileNotFoundError:
            return 0
        if found.st_size != self._size:
            try:
                self._record(found.st_size, found.st_mtime_ns)
            except OSError as error:
                if error.errno not in UNWRITABLE:
                    raise
                self._remember(found.st_size, found.st_mtime_ns)
        return found.st_size

    def covering(self, end: int) -> tuple[int, int]:
        """The size and the time (ns) of the record that covers a line which ends at this offset."""
        at = bisect_left(self._sizes, end)
        return self._sizes[at], self._times[at]

    def since(self, time: int) -> int:
        """Lines that end after this offset were written at this time (ns) or later."""
        at = bisect_left(self._times, time)
        return self._sizes[at - 1] if at else 0

    def _record(self, size: int, written: int) -> None:
        """An index that was there is not made again: somebody is removing the folder."""
        create = 0 if self._position else os.O_CREAT
        descriptor = os.open(self.index, os.O_RDWR | create | os.O_CLOEXEC, 0o600)
        try:
            self._read(descriptor, size)
            if size > self._size:
                self._remember(size, written)
                self._free()
                os.pwrite(descriptor, RECORD.pack(size, self._times[-1]), self._position)
                self._position += RECORD.size
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int, size: int) -> None:
        """What other objects have added to the index. If the log was truncated, the index begins again."""
        length = os.fstat(descriptor).st_size
        if length < self._position:
            self._forget()
        start = first_data(descriptor, self._position) // RECORD.size * RECORD.size
        data = os.pread(descriptor, length - start, start) if length > start else b""
        whole = data[: len(data) // RECORD.size * RECORD.size]
        for recorded, time in RECORD.iter_unpack(whole):
            if recorded:  # else a freed one
                self._remember(recorded, time)
        self._position = start + len(whole)
        if size < self._size:
            os.ftruncate(descriptor, 0)
            self._forget()

    def _free(self) -> None:
        """The oldest parts of a log that is too long, or that has too many records."""
        end = (self._size // PART - (PARTS - 1)) * PART
        if len(self._sizes) > MOST_RECORDS:
            end = max(end, self._sizes[len(self._sizes) // 2])
        if end <= self._freed:
            return
        free_beginning(self.log, end)
        self._freed = end
        count = bisect_right(self._sizes, end)
        free_beginning(self.index, self._position - RECORD.size * (len(self._sizes) - count))
        del self._sizes[:count], self._times[:count]

    def _remember(self, size: int, time: int) -> None:
        """Never a time before the last one, whatever the machine's clock does."""
        if size > self._size:
            self._sizes.append(size)
            self._times.append(max(time, self._times[-1]) if self._times else time)
            self._size = size

    def _forget(self) -> None:
        self._sizes, self._times = array("Q"), array("Q")
        self._position = self._size = self._freed = 0


async def keep_times(logs: Callable[[], Iterable[Path]]) -> None:
    """Notice the growth of the logs that are being written, until cancelled. A log that is no longer among them is
    looked at once more, for its last lines."""
    watched: dict[Path, LogTimes] = {}
    while True:
        growing = set(logs())
        for log in growing - watched.keys():
            watched[log] = LogTimes(log)
        for times in watched.values():
            times.notice()
        for log in watched.keys() - growing:
            del watched[log]
        await asyncio.sleep(PERIOD)


def first_data(descriptor: int, offset: int) -> int:
    """The first offset from here on that was not freed; the file's size if there is none."""
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return os.fstat(descriptor).st_size


def free_beginning(path: Path, length: int) -> None:
    """Some file systems cannot do it; then the file is kept whole."""
    if length <= 0:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        arguments = (ctypes.c_int(PUNCH_HOLE), ctypes.c_int64(0), ctypes.c_int64(length))
        if _libc.fallocate(descriptor, *arguments) and ctypes.get_errno() != errno.EOPNOTSUPP:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    finally:
        os.close(descriptor)


def rfc3339(time: int) -> str:
    """As kubelets print it: always nine digits."""
    second, rest = divmod(time, SECOND)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
