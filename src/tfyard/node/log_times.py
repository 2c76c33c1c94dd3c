"""Index of the times when the parts of a log were written.

Log files hold only what containers write, so their lines carry no times. An index beside each log has a record
for each growth that was noticed: how long the log was, and when it was last written. The time of a line is that of
the first record that covers its end. So it is that of the line's own write or of a later one before the next look,
and never one from before the line was there.
"""

import errno
import os
import struct
import time
from array import array
from bisect import bisect_left
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

PERIOD = 0.2
"""Seconds between two looks at a log that grows."""
MOST_RECORDS = 1 << 18
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.ENOENT)
"""A full disk, or a folder that is being removed: logs can still be read, with times that are not kept."""
RECORD = struct.Struct("<QQ")
SECOND = 10**9


class TimeIndex:
    """The index of one log. One object records, others may read beside it, also in other processes. It stays
    small: if it has grown too long, every second record of the older half goes, so older times are less exact."""

    def __init__(self, log: Path) -> None:
        self.log, self.index = log, log.with_name(f".{log.name}.times")
        self.began = self.ended = 0
        """Times when the program was started and when it ended (ns); 0: unknown."""
        self.is_kept = False
        """Whether there is an index; set by `look`."""
        self._sizes, self._times = array("Q"), array("Q")
        self._position = self._size = 0
        self._last = b""
        """The record before the position."""
        self._looked = (0, 0)

    def begin(self) -> None:
        """Record the start of the program, with length 0."""
        self.began = time.time_ns()
        self._last = RECORD.pack(0, self.began)
        self.index.write_bytes(self._last)
        self._position = RECORD.size

    def end(self) -> None:
        """Record the last lines of the program, and its end, with length 0."""
        self.notice()
        self.ended = time.time_ns()
        with self.index.open("ab") as file:
            file.write(RECORD.pack(0, self.ended))

    def notice(self) -> int:
        """Record how long the log is now, and return it."""
        try:
            stat = self.log.stat()
        except FileNotFoundError:
            return 0
        if stat.st_size != self._size:
            try:
                self._record(stat.st_size, stat.st_mtime_ns)
            except OSError as error:
                if error.errno not in UNWRITABLE:
                    raise
                self._remember(stat.st_size, stat.st_mtime_ns)
        return stat.st_size

    def look(self, *, is_over: bool) -> int:
        """Read the records that another object writes, and return up to where the log has times. What is not
        recorded by the next look, or by the end, will not be: it gets the time when the log was last written."""
        try:
            stat = self.log.stat()
        except FileNotFoundError:
            return 0
        self.is_kept = self._catch_up(stat.st_size)
        now = stat.st_size, stat.st_mtime_ns
        self._remember(*(now if is_over else self._looked))
        self._looked = now
        return self._size

    def load(self) -> Self:
        """Read what is recorded by now."""
        self.look(is_over=False)
        return self

    def covering(self, end: int) -> tuple[int, int]:
        """The size and the time (ns) of the record that covers a line which ends at this offset."""
        at = bisect_left(self._sizes, end)
        return self._sizes[at], self._times[at]

    def since(self, time: int) -> int:
        """Offset after which the lines end that were written at this time (ns) or later."""
        at = bisect_left(self._times, time)
        return self._sizes[at - 1] if at else 0

    def _record(self, size: int, written: int) -> None:
        """Add a record. An index that was there is not made again: its folder is being removed."""
        create = 0 if self._position else os.O_CREAT
        descriptor = os.open(self.index, os.O_RDWR | create | os.O_CLOEXEC, 0o600)
        try:
            if self._read(descriptor, size):
                os.ftruncate(descriptor, 0)
            if size > self._size:
                self._remember(size, written)
                self._shorten(descriptor)
                self._last = RECORD.pack(size, self._times[-1])
                os.pwrite(descriptor, self._last, self._position)
                self._position += RECORD.size
        finally:
            os.close(descriptor)

    def _catch_up(self, size: int) -> bool:
        try:
            descriptor = os.open(self.index, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            self._read(descriptor, size)
        finally:
            os.close(descriptor)
        return True

    def _read(self, descriptor: int, size: int) -> bool:
        """Read what others have added to the index. True: the log was truncated, and the index begins again."""
        length, last = os.fstat(descriptor).st_size, max(0, self._position - RECORD.size)
        if os.pread(descriptor, self._position - last, last) != self._last:  # the index was shortened
            self._forget()
        start = first_data(descriptor, self._position) // RECORD.size * RECORD.size
        data = os.pread(descriptor, length - start, start) if length > start else b""
        whole = data[: len(data) // RECORD.size * RECORD.size]
        for number, (recorded, written) in enumerate(RECORD.iter_unpack(whole), start // RECORD.size):
            if recorded:
                self._remember(recorded, written)
            elif number:
                self.ended = written
            else:
                self.began = written
        self._position, self._last = start + len(whole), whole[-RECORD.size :] or self._last
        if is_truncated := size < self._size:
            self._forget()
        return is_truncated

    def _shorten(self, descriptor: int) -> None:
        """Drop old records, before the latest is written. A reader that comes between misses some, and no line."""
        if len(self._sizes) <= MOST_RECORDS:
            return
        half = len(self._sizes) // 2
        for values in (self._sizes, self._times):
            values[:half] = values[:half:2]
        kept = zip(self._sizes[:-1], self._times[:-1], strict=True)
        data = b"".join(RECORD.pack(*each) for each in ((0, self.began), *kept))
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
        self._position = len(data)

    def _remember(self, size: int, time: int) -> None:
        """Keep a record, never with a time before the last one, whatever the machine's clock does."""
        if size > self._size:
            self._sizes.append(size)
            self._times.append(max(time, self._times[-1]) if self._times else time)
            self._size = size

    def _forget(self) -> None:
        self._sizes, self._times = array("Q"), array("Q")
        self._position, self._size, self._last = 0, 0, b""


def first_data(descriptor: int, offset: int) -> int:
    """The first offset from here on that was not freed; the file's size if there is none."""
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return os.fstat(descriptor).st_size


def rfc3339(time: int) -> str:
    """A time as kubelets print it, always with nine digits."""
    second, nanoseconds = divmod(time, SECOND)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"
