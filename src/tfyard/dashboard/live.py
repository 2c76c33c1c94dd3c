"""What has changed on a page, as it changes: one stream for each tab, or an answer to each poll where a proxy
holds streams back. A slow reader delays nobody else; lines that it cannot get in time are counted."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from aiohttp import web
from msgspec import Struct

from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.feed import Batch, Feed, LogLine
from tfyard.dashboard.log_lines import SHOWN, html
from tfyard.dashboard.viewer import Viewer

TICK, QUIET = 0.25, 10.0
"""Seconds between two steps of a stream; and after which a comment keeps the connection."""
REDRAW = 1.0
"""Seconds between two looks at parts whose ages change by themselves."""


class LogUpdate(Struct, frozen=True, omit_defaults=True):
    """New lines of a log, as HTML."""

    html: str
    next: int
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
    fits: Callable[[LogLine], bool]
    tasks: Sequence[str]
    next: int

    def update(self) -> LogUpdate | None:
        batch: Batch = self.feed.after(self.next, self.fits, SHOWN)
        is_over = bool(self.feed.end)
        if batch.next == self.next and not is_over:
            return None
        self.next = batch.next
        return LogUpdate(str(html(batch.lines, self.tasks)), batch.next, batch.skipped, self.feed.end)


class Subject(Struct):
    """What a tab shows."""

    parts: Callable[[], Awaitable[list[PagePart]]]
    log: LogView | None = None


async def answer(request: web.Request, viewer: Viewer, subject: Subject) -> web.StreamResponse:
    if request.query.get("poll"):
        update = Update(_updates(await subject.parts(), {}), subject.log.update() if subject.log else None)
        return web.Response(body=msgspec.json.encode(update), content_type="application/json")
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with contextlib.suppress(ConnectionResetError, asyncio.CancelledError):
        await _stream(response, viewer, subject)
    return response


async def _stream(response: web.StreamResponse, viewer: Viewer, subject: Subject) -> None:
    known: dict[str, str] = {}
    version, drawn, sent, end_told = -1, 0.0, 0.0, False
    while not viewer.board.is_closed:
        update = Update()
        if viewer.board.version != version or time.monotonic() - drawn > REDRAW:
            version, drawn = viewer.board.version, time.monotonic()
            update = Update(_updates(await subject.parts(), known))
        log = subject.log.update() if subject.log else None
        if log and (log.html or log.skipped or (log.end and not end_told)):
            end_told = bool(log.end)
            update = Update(update.parts, log)
        if update.parts or update.log:
            await response.write(b"data: " + msgspec.json.encode(update) + b"\n\n")
            sent = time.monotonic()
        elif time.monotonic() - sent > QUIET:
            await response.write(b": still here\n\n")
            sent = time.monotonic()
        if subject.log and not subject.log.feed.end:
            await asyncio.sleep(TICK)
        else:
            await viewer.board.wait(version, REDRAW)
            await asyncio.sleep(TICK)


def _updates(parts: Sequence[PagePart], known: dict[str, str]) -> list[PartUpdate]:
    """The parts that are not as they were sent."""
    found = []
    for part in parts:
        if known.get(part.id) != (version := part.version):
            known[part.id] = version
            found.append(PartUpdate(part.id, version, part.html))
    return found
