"""Limits the size of a container's log.

A log is limited as by a kubelet's log rotation. Its oldest parts are freed by punching a hole
into the file, because then all offsets stay valid: for the container, which goes on writing, and for the index of
times beside it.
"""

import asyncio
import ctypes
import errno
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path

from tfyard.node import log_times
from tfyard.node.log_times import PERIOD, RECORD, TimeIndex

PART, PARTS = 10 << 20, 5
"""Kubelets rotate logs at 10 MiB and keep five files."""
PUNCH_HOLE = 0x02 | 0x01  # the size of the file stays the same
_libc = ctypes.CDLL(None, use_errno=True)


class LogTimes(TimeIndex):
    """Index of a log that is limited. Several objects may write to the same index, in one thread. Records are only
    added, so the time of a line stays the same for every later reader."""

    def __init__(self, log: Path) -> None:
        super().__init__(log)
        self._freed = 0

    def _shorten(self, descriptor: int) -> None:  # noqa: ARG002
        """Free the oldest parts of a log that is too long, or that has too many records."""
        end = (self._size // PART - (PARTS - 1)) * PART
        if len(self._sizes) > log_times.MOST_RECORDS:
            end = max(end, self._sizes[len(self._sizes) // 2])
        if end <= self._freed:
            return
        free_beginning(self.log, end)
        self._freed = end
        count = bisect_right(self._sizes, end)
        free_beginning(self.index, self._position - RECORD.size * (len(self._sizes) - count))
        del self._sizes[:count], self._times[:count]

    def _forget(self) -> None:
        super()._forget()
        self._freed = 0


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


def free_beginning(path: Path, length: int) -> None:
    """Free the first bytes of a file. Some file systems cannot; then it is kept whole."""
    if length <= 0:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        arguments = (ctypes.c_int(PUNCH_HOLE), ctypes.c_int64(0), ctypes.c_int64(length))
        if _libc.fallocate(descriptor, *arguments) and ctypes.get_errno() != errno.EOPNOTSUPP:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    finally:
        os.close(descriptor)
