"""The position of a reader in a log, by which it continues after a broken connection without doubled or lost
lines.

A log can be requested since a whole second only. So the reader remembers how many lines of the last two seconds it
has seen, requests the log since the earlier of them, and drops as many. Two seconds, because the times of standard
output and standard error may be a little out of order.
"""

from collections import Counter
from collections.abc import Sequence

SECOND = len("2026-11-16T04:00:00")


class Gone(Exception):
    """Lines that were read before are no longer at their place: the log was rotated, or is another program's."""


class LogPosition:
    """The position in one log. `is_cut`: reading did not begin at the start of a second (`--tail`), so the lines
    of that second cannot be counted."""

    def __init__(self, *, is_cut: bool = False) -> None:
        self.last = b""
        """The latest time seen."""
        self._at_last = 0
        self._seen: Counter[bytes] = Counter()
        """Second -> number of its lines, for the latest two seconds."""
        self._is_cut, self._cut = is_cut, b""
        self._skip = self._skip_at_last = 0
        self._by_time = False
        self._found_last = True

    @property
    def is_expecting(self) -> bool:
        """Whether lines that were seen before have not been received again yet."""
        return self._skip > 0 or (self._by_time and not self._found_last)

    def reopen(self, *, after_gap: bool = False) -> str:
        """The sinceTime of the next request; empty: from the beginning. Called before each request."""
        if not self.last:
            return ""
        since = min(self._seen)
        self._by_time = after_gap or since == self._cut
        self._found_last = after_gap
        self._skip = 0 if self._by_time else self._seen.total()
        self._skip_at_last = self._at_last
        zone = self.last[SECOND:].lstrip(b".0123456789")
        return (since + zone).decode()

    def take(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """The new ones of these lines, which begin with their time."""
        if self._skip:
            lines = self._after_count(lines)
        elif self._by_time:
            lines = self._after_time(lines)
        if lines:
            self._note(lines)
        return lines

    def _after_count(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        for at, line in enumerate(lines):
            if not self._skip:
                return lines[at:]
            if stamp(line) > self.last:
                raise Gone
            self._skip -= 1
        return ()

    def _after_time(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        for at, line in enumerate(lines):
            now = stamp(line)
            if now > self.last:
                if not self._found_last:
                    raise Gone
                self._by_time = False
                return lines[at:]
            if now == self.last:
                self._found_last = True
                self._skip_at_last -= 1
                if self._skip_at_last < 0:
                    self._by_time = False
                    return lines[at:]
        return ()

    def _note(self, lines: Sequence[bytes]) -> None:
        seen = self._seen
        if self._is_cut and not seen:
            self._cut = lines[0][:SECOND]
        seen.update([line[:SECOND] for line in lines])
        while len(seen) > 2:
            del seen[min(seen)]
        last = max(map(stamp, lines))
        if last >= self.last:
            before = self._at_last if last == self.last else 0
            self._at_last = before + sum(line.startswith(last) for line in lines)
            self.last = last


def stamp(line: bytes) -> bytes:
    return line[: line.find(b" ")]


def parted(line: bytes) -> tuple[bytes, bytes]:
    """(time, text) of a line; the time is empty if it has none."""
    return (line[:at], line[at + 1 :]) if is_stamped(line) and (at := line.find(b" ")) >= 0 else (b"", line)


def is_stamped(line: bytes) -> bool:
    """Whether a line begins with its time. A kubelet that cannot read a log writes a line without one into it."""
    return line[:4].isdigit() and line[10:11] == b"T" and line[13:14] == b":"
