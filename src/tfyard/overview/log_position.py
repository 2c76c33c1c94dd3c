"""Where in a log a reader is: enough to go on after a broken connection without doubling or losing a line.

A log can be asked for since a whole second only. So the reader remembers how many lines of the last two seconds it
has seen, asks for the log since the earlier of them, and drops as many. Two seconds, because the times of standard
output and standard error may be a little out of order.
"""

from collections import Counter
from collections.abc import Sequence

SECOND = len("2026-11-16T04:00:00")


class Gone(Exception):
    """What was read before is no longer at its place: the log was rotated, or is another program's."""


class Position:
    """`is_cut`: reading did not begin at the start of a second (`--tail`), so lines cannot be counted in it."""

    def __init__(self, *, is_cut: bool = False) -> None:
        self.last = b""
        """The latest time seen."""
        self._at_last = 0
        self._seen: Counter[bytes] = Counter()
        """Second -> lines, of the latest two."""
        self._is_cut, self._cut = is_cut, b""
        self._skip = self._skip_at_last = 0
        self._by_time = False
        self._found_last = True

    @property
    def is_expecting(self) -> bool:
        """Whether lines that were seen have not come again yet."""
        return self._skip > 0 or (self._by_time and not self._found_last)

    def reopen(self, *, after_gap: bool = False) -> str:
        """Before each request: what to ask for the log since; empty: from its beginning."""
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
        """Those that are new, of lines that begin with their time."""
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


def is_stamped(line: bytes) -> bool:
    """A kubelet that cannot read a log says so in a line without a time, in the middle of it."""
    return line[:4].isdigit() and line[10:11] == b"T" and line[13:14] == b":"
