"""Sends what has changed on a page: one stream for each tab, or an answer to each poll where a proxy
holds streams back. A slow reader delays nobody else; lines that it cannot get in time are counted."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence

import msgspec
from aiohttp import web
from msgspec import Struct

from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.feed import Batch, Feed, LogLine
from tfyard.dashboard.log_lines import SHOWN, LogChoice, html
from tfyard.dashboard.viewer import DrawnPage, Viewer

TICK, FLOODED, QUIET = 0.25, 1.0, 10.0
"""Seconds between two steps of a stream; between those of one that more is written than anybody reads; and after
which an update without content tells that the connection still lives."""
REDRAW = 1.0
"""Seconds between two looks at parts whose ages change by themselves."""


class LogUpdate(Struct, frozen=True, omit_defaults=True):
    """New lines of a log, as HTML."""

    html: str
    next: str
    """What the tab asks for `after`: the feed and the number of its next line."""
    is_anew: bool = False
    """Whether the tab must replace the lines that it has: the log is read from the beginning."""
    skipped: int = 0
    end: str = ""


class PartUpdate(Struct, frozen=True):
    id: str
    version: str
    html: str


class Update(Struct, frozen=True, omit_defaults=True):
    parts: list[PartUpdate] = []
    log: LogUpdate | None = None


class LogView(Struct):
    """The log as one tab shows it."""

    feed: Feed
    choice: LogChoice
    fits: Callable[[LogLine], bool]
    tasks: Sequence[str]
    next: int = 0
    is_anew: bool = False
    """Whether the tab has no lines of this feed yet."""

    def update(self) -> LogUpdate | None:
        """What the tab needs to be current; None: there is nothing new."""
        end, batch, is_anew = self.feed.end, self._batch(), self.is_anew
        if not end and batch.next == self.next:
            return None
        same = (self.choice, self.next, is_anew, batch.next, len(self.tasks))
        lines = self.feed.drawn(same, lambda: str(html(batch.lines, self.tasks)))
        self.next, self.is_anew = batch.next, False
        return LogUpdate(lines, self.feed.position(batch.next), is_anew, batch.skipped, end)

    def _batch(self) -> Batch:
        if self.is_anew:
            return self.feed.newest(self.fits, SHOWN)
        return self.feed.after(self.next, self.fits, SHOWN)


class Subject(Struct):
    """The page that a tab shows."""

    key: Hashable
    """Key that is equal for all tabs that show the same page."""
    parts: Callable[[], Awaitable[list[PagePart]]]
    log: LogView | None = None
    renew: Callable[[], Awaitable[None]] | None = None
    """Reads the log from the beginning, if it has to be."""


async def _drawn(viewer: Viewer, subject: Subject) -> DrawnPage:
    """The parts of a page, once for all tabs that show the same; not anew for each of many changes in a moment."""
    version, known = viewer.board.version, viewer.drawn.get(subject.key)
    if known and time.monotonic() - known.at < (REDRAW / 2 if known.version == version else TICK):
        return known
    made = DrawnPage(await subject.parts(), version, time.monotonic())
    viewer.drawn[subject.key] = made
    viewer.drawn.move_to_end(subject.key)
    while time.monotonic() - next(iter(viewer.drawn.values())).at > REDRAW:
        viewer.drawn.popitem(last=False)
    return made


async def answer(request: web.Request, viewer: Viewer, subject: Subject) -> web.StreamResponse:
    if request.query.get("poll"):
        page, log = await _drawn(viewer, subject), subject.log.update() if subject.log else None
        update = Update(_updates(page.parts, {}), log)
        return web.Response(body=msgspec.json.encode(update), content_type="application/json")
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with contextlib.suppress(asyncio.CancelledError):
        await _stream(response, viewer, subject)
    return response


async def _stream(response: web.StreamResponse, viewer: Viewer, subject: Subject) -> None:
    known: dict[str, str] = {}
    version, drawn, sent, end_told = -1, 0.0, 0.0, False
    while not viewer.board.is_closed:
        update = Update()
        if viewer.board.version != version or time.monotonic() - drawn > REDRAW:
            drawn = time.monotonic()
            if subject.renew:
                await subject.renew()
            page = await _drawn(viewer, subject)
            version, update = page.version, Update(_updates(page.parts, known))
        log = subject.log.update() if subject.log else None
        if log and (log.html or log.skipped or log.is_anew or (log.end and not end_told)):
            end_told = bool(log.end)
            update = Update(update.parts, log)
        if update.parts or update.log or time.monotonic() - sent > QUIET:
            await response.write(b"data: " + msgspec.json.encode(update) + b"\n\n")
            sent = time.monotonic()
        if subject.log and not subject.log.feed.end:
            await asyncio.sleep(FLOODED if log and log.skipped else TICK)
        else:
            await viewer.board.wait(version, REDRAW)
            await asyncio.sleep(TICK)


def _updates(parts: Sequence[PagePart], known: dict[str, str]) -> list[PartUpdate]:
    """The parts that have changed since they were sent to the tab."""
    found = []
    for part in parts:
        if known.get(part.id) != (version := part.version):
            known[part.id] = version
            found.append(PartUpdate(part.id, version, part.html))
    return found
