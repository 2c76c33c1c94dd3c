"""The newest lines of a job's log, read once for all tabs that show it. Memory is bounded: what falls out of the
ring before a tab has seen it is counted."""

import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.logs.lines import Lines, LogEvent, Said, Start, Wanted
from tfyard.logs.readings import without_colours
from tfyard.node.logs import clean_lines
from tfyard.overview.waiting import WaitResult
from tfyard.sdk.place import Place
from tfyard.sdk.threads import Background

KEPT, FIRST = 4000, 400
"""Lines that are kept, and those of each task's past that are read first."""
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
        """Its address: the same whenever and by whomever the log is read."""
        return f"{self.start.name}@{self.stamp}-{zlib.crc32(self.text.encode()):08x}"


class Batch(Struct, frozen=True):
    """Lines for one tab."""

    lines: list[LogLine]
    next: int
    """The number of the first line that comes after them."""
    skipped: int = 0
    """Lines that could not be shown, because more were written than a page can show."""


def of_event(event: LogEvent) -> list[LogLine]:
    if isinstance(event, Said):
        return [LogLine(event.start or Start(""), without_colours(event.text), remark=event.kind)]
    return list(_lines(event))


def _lines(event: Lines) -> Iterable[LogLine]:
    if not event.texts:
        return
    texts = without_colours(clean_lines(b"\n".join(event.texts), LONGEST)).split("\n")
    stamps = [stamp.decode() for stamp in event.stamps] or [""] * len(texts)
    for text, stamp in zip(texts, stamps, strict=True):
        yield LogLine(event.start, text, stamp)


class Feed:
    """Follows one log in a thread with an event loop of its own: a flood must not delay pages."""

    def __init__(self, place: Place, tasks: Sequence[str], changed: Callable[[], None]) -> None:
        self._place, self._changed = place, changed
        self._wanted = Wanted(tasks=tuple(tasks), tail=FIRST, times=True)
        self._ring: deque[LogLine] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._written = 0
        """Number of lines so far; the last of the ring has the number before."""
        self.end = ""
        """How the log has ended, or why it cannot be read; empty: it goes on."""
        self._background = Background(self._follow)

    def close(self) -> None:
        self._background.cancel()

    async def _follow(self) -> None:
        try:
            async for event in self._place.follow(self._wanted):
                if isinstance(event, WaitResult):
                    self.end = event.text or "the job has ended"
                elif event is not None:
                    self._add(event)
        except TfyardError as problem:
            self.end = str(problem)
        self._changed()

    def _add(self, event: LogEvent) -> None:
        count = 1
        if isinstance(event, Lines):
            count, last = len(event.texts), event.texts[-KEPT:]
            event = Lines(event.start, last, event.stamps[-len(last) :] if event.stamps else ())
        found = of_event(event)
        with self._lock:
            self._written += count
            self._ring.extend(found)
        self._changed()

    def newest(self, fits: Callable[[LogLine], bool], most: int) -> Batch:
        """The newest lines that fit, by their times."""
        with self._lock:
            kept, written = list(self._ring), self._written
        fitting = [line for line in kept if fits(line)]
        if all(line.stamp for line in fitting):
            fitting.sort(key=lambda line: line.stamp)
        return Batch(fitting[-most:], written)

    def after(self, number: int, fits: Callable[[LogLine], bool], most: int) -> Batch:
        """The lines from this number on; of too many, the newest."""
        with self._lock:
            new = min(len(self._ring), max(0, self._written - number))
            kept, written = list(islice(self._ring, len(self._ring) - new, None)), self._written
        fitting = [line for line in kept if fits(line)]
        skipped = max(0, written - number) - new + max(0, len(fitting) - most)
        return Batch(fitting[-most:], written, skipped)
