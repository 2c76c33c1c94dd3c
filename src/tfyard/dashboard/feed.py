"""The newest lines of a job's log, read once for all tabs that show it. Memory is bounded: what falls out of the
ring before a tab has seen it is counted."""

import secrets
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.logs.lines import Lines, LogEvent, LogSelection, Remark, Start
from tfyard.logs.terminal_text import without_colours
from tfyard.overview.waiting import WaitResult
from tfyard.sdk.place import Place
from tfyard.sdk.threads import Background

KEPT, FIRST = 4000, 400
"""Number of lines that are kept, and of past lines of each task that are read first."""
MOST_CHARACTERS = 2_000_000
"""Characters of the lines that are kept."""
TOGETHER = 0.25
"""Seconds for which all tabs are told the same lines: what many of them show is drawn once."""
LONGEST = 4000
"""Characters of a line that a page shows."""


class LogLine(Struct, frozen=True):
    start: Start
    text: str
    stamp: str = ""
    """When it was written; empty: it is not known."""
    remark: str = ""
    """A stable word if this is a remark of tfyard, and no line of the program."""

    @property
    def id(self) -> str:
        """Address of the line, which is the same at each reading of the log."""
        return f"{self.start.name}@{self.stamp}-{zlib.crc32(self.text.encode()):08x}"


class Batch(Struct, frozen=True):
    """Lines that are sent to one tab."""

    lines: list[LogLine]
    next: int
    """The number of the first line that comes after them."""
    skipped: int = 0
    """Lines that could not be shown, because more were written than a page can show."""


class RingView(Struct):
    """The lines that all tabs get at one moment, and their HTML."""

    lines: list[LogLine]
    written: int
    at: float
    drawn: dict[Hashable, str]


def of_event(event: LogEvent) -> list[LogLine]:
    if isinstance(event, Remark):
        return [LogLine(event.start or Start(""), without_colours(event.text), remark=event.kind)]
    return [LogLine(event.start, text, stamp) for stamp, text in event.rows(LONGEST)]


def by_time(lines: Iterable[LogLine]) -> list[LogLine]:
    """The lines of all tasks by their times. What has no time, such as a remark, stays behind the line of its task
    that it follows."""
    newest, of_task, placed = "", dict[str, str](), list[tuple[str, LogLine]]()
    for line in lines:
        stamp = line.stamp or of_task.get(line.start.task, newest)
        of_task[line.start.task], newest = stamp, max(newest, stamp)
        placed.append((stamp, line))
    return [line for _, line in sorted(placed, key=lambda each: each[0])]


class Feed:
    """Follows one log in a thread with an event loop of its own: a flood must not delay pages."""

    def __init__(self, place: Place, tasks: Sequence[str]) -> None:
        self._place = place
        self.id = secrets.token_hex(4)
        """Numbers of lines are those of this feed: a later one of the same job counts anew."""
        self.tabs = 0
        """Number of tabs that show the log."""
        self._wanted = LogSelection(tasks=tuple(tasks), tail=FIRST, times=True)
        self._ring, self._size = deque[LogLine](), 0
        self._lock = threading.Lock()
        self.written = 0
        """Number of lines so far; the last of the ring has the number before."""
        self._told = RingView([], 0, float("-inf"), {})
        self.end = ""
        """How the log has ended, or why it cannot be read; empty: it goes on."""
        self.ended = 0.0
        """Time at which the log has ended, by the monotonic clock."""
        self._background = Background(self._follow)

    def close(self) -> None:
        self._background.cancel()

    async def _follow(self) -> None:
        try:
            async for event in self._place.follow(self._wanted):
                if isinstance(event, WaitResult):
                    self._note_end(event.text or "the job has ended")
                elif event is not None:
                    self._add(event)
        except (TfyardError, OSError) as problem:  # OSError: the folder of a run was removed meanwhile
            self._note_end(str(problem))

    def _note_end(self, text: str) -> None:
        self._told.at = float("-inf")  # whoever sees the end sees the last lines, too
        self.end, self.ended = text, time.monotonic()

    def _add(self, event: LogEvent) -> None:
        count = 1
        if isinstance(event, Lines):
            count, last = len(event.texts), event.texts[-KEPT:]
            event = Lines(event.start, last, event.stamps[-len(last) :] if event.stamps else ())
        found = of_event(event)
        with self._lock:
            self.written += count
            self._ring.extend(found)
            self._size += sum(len(line.text) for line in found)
            while len(self._ring) > KEPT or self._size > MOST_CHARACTERS:
                self._size -= len(self._ring.popleft().text)

    def _now(self) -> RingView:
        if time.monotonic() - self._told.at >= TOGETHER:
            with self._lock:
                self._told = RingView(list(self._ring), self.written, time.monotonic(), {})
        return self._told

    def drawn(self, batch: Hashable, draw: Callable[[], str]) -> str:
        """The HTML of a batch: as it was drawn for another tab, or drawn now."""
        known = self._now().drawn
        if batch not in known:
            known[batch] = draw()
        return known[batch]

    def position(self, number: int) -> str:
        """The position that a tab remembers when it has the lines before this one."""
        return f"{self.id}.{number}"

    def number(self, position: str) -> int | None:
        """The number of the line at a position; None: the position is of another feed."""
        id, _, number = position.partition(".")
        return int(number) if id == self.id and number.isdecimal() else None

    def newest(self, fits: Callable[[LogLine], bool], most: int) -> Batch:
        """The newest lines that fit, by their times."""
        told = self._now()
        fitting = by_time(line for line in told.lines if fits(line))
        return Batch(fitting[-most:], told.written)

    def after(self, number: int, fits: Callable[[LogLine], bool], most: int) -> Batch:
        """The lines from this number on; if they are too many, the newest."""
        told = self._now()
        new = min(len(told.lines), max(0, told.written - number))
        fitting = [line for line in told.lines[len(told.lines) - new :] if fits(line)]
        skipped = max(0, told.written - number) - new + max(0, len(fitting) - most)
        return Batch(fitting[-most:], told.written, skipped)
