"""The log of a job for one page: the newest lines, or those around the line of an address; and as a file."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice

from markupsafe import Markup
from msgspec import Struct

from tfyard import aio
from tfyard.dashboard import log_lines
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.feed import Feed, LogLine, by_time, of_event
from tfyard.dashboard.live import LogView
from tfyard.dashboard.log_lines import SHOWN, LogChoice
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import TfyardError
from tfyard.logs.lines import Lines, LogEvent, LogSelection, attempt_of, chosen
from tfyard.overview.wording import TOOL

FIRST_LINES = 1.0
"""Seconds that a page waits for the first lines of a log; later ones come by its stream."""
AROUND = timedelta(seconds=60)
"""Time before a line whose lines are shown with it."""
MOST_READ = 20_000
SAVED_LINES, SAVED_BYTES = 2000, 6_000_000
"""Lines of each task, and the size of all of them, in a page that is saved: the whole is at most 10 MB."""


class ShownLog(Struct, frozen=True, kw_only=True):
    lines: Markup
    count: int
    next: str = ""
    choice: LogChoice
    tasks: Sequence[str]
    end: str = ""
    is_live: bool = True
    """False: lines around one of the past, which do not change."""


async def shown(viewer: Viewer, address: Address, tasks: Sequence[str], choice: LogChoice) -> ShownLog:
    choice, fits = log_lines.checked(choice, tasks)
    if choice.at:
        lines, problem = await aio.in_thread(_around, viewer, address, choice)
        html = log_lines.html(lines, tasks, choice.at)
        return ShownLog(lines=html, count=len(lines), choice=choice, tasks=tasks, end=problem, is_live=False)
    feed = await viewer.feed(address, tasks)
    try:
        await _begun(feed)
        batch = feed.newest(fits, SHOWN)
    finally:
        viewer.leave(address, feed)
    html = log_lines.html(batch.lines, tasks)
    return ShownLog(
        lines=html,
        count=len(batch.lines),
        next=feed.position(batch.next),
        choice=choice,
        tasks=tasks,
        end=feed.end,
    )


async def _begun(feed: Feed) -> None:
    """Wait for the first lines of all tasks: until no others come for a moment, or the log has ended."""
    loop, seen = asyncio.get_running_loop(), -1
    end = loop.time() + FIRST_LINES
    while not feed.end and loop.time() < end and (not feed.written or feed.written > seen):
        seen = feed.written
        await asyncio.sleep(0.1)


async def view(
    viewer: Viewer, address: Address, tasks: Sequence[str], choice: LogChoice, position: str
) -> LogView:
    """The log for the stream of a tab, which must `leave` its feed."""
    choice, fits = log_lines.checked(choice, tasks)
    feed = await viewer.feed(address, tasks)
    number = feed.number(position)
    return LogView(feed, choice, fits, tasks, number or 0, is_anew=number is None)


async def renew(viewer: Viewer, address: Address, view: LogView) -> None:
    """The log of a job that runs again is read anew, also for tabs that have been open all the time."""
    if not viewer.is_outdated(address, view.feed):
        return
    with suppress(TfyardError):  # then the tab keeps what it has, and asks again
        feed = await viewer.feed(address, view.tasks)
        viewer.leave(address, view.feed)
        view.feed, view.next, view.is_anew = feed, 0, True


def _around(viewer: Viewer, address: Address, choice: LogChoice) -> tuple[list[LogLine], str]:
    """The lines around one, from a log that may be long over."""
    name, _, rest = choice.at.partition("@")
    stamp = rest.rpartition("-")[0]
    task, _, attempt = name.partition("/")[0].partition("#")
    try:
        at = datetime.fromisoformat(stamp).astimezone(UTC)
        number, restart = attempt_of(attempt)
        wanted = LogSelection(
            tasks=(task,), since=at - AROUND, times=True, attempt=number, restart=restart, all_attempts=True
        )
        events = viewer.identity.find(address).logs(wanted)
        lines = list(islice((line for event in events for line in of_event(event)), MOST_READ))
    except (TfyardError, ValueError, OverflowError) as problem:
        return [], f"this line cannot be found: {problem}"
    place = next((at for at, line in enumerate(lines) if line.id == choice.at), None)
    if place is None:
        return lines[:SHOWN], "this line is not in the log any more; these are of its time"
    first = max(0, place - SHOWN // 2)
    return lines[first : first + SHOWN], ""


# --- as a file


def saved(viewer: Viewer, address: Address, tasks: Sequence[str]) -> ShownLog:
    """As much of the log as a file of a page may have; it blocks."""
    wanted = LogSelection(tasks=tuple(tasks), tail=SAVED_LINES, times=True)
    try:
        events = viewer.identity.find(address).logs(wanted)
        lines = [line for event in events for line in of_event(event)]
        problem = ""
    except TfyardError as error:
        lines, problem = [], str(error)
    html, left_out = log_lines.saved(by_time(lines), tasks, SAVED_BYTES)
    told = f"{left_out:,} earlier lines are left out" if left_out else ""
    return ShownLog(
        lines=html,
        count=len(lines),
        choice=LogChoice(),
        tasks=tasks,
        end=problem or told,
        is_live=False,
    )


def text(viewer: Viewer, address: Address, tasks: Sequence[str], choice: LogChoice) -> Iterator[bytes]:
    """The whole log with all attempts, in the form of `tfyard logs --timestamps`; it blocks."""
    _, fits = log_lines.checked(choice, tasks)
    wanted = LogSelection(
        tasks=chosen(choice.tasks.replace(",", " ").split(), tasks) if choice.tasks else tuple(tasks),
        times=True,
        all_attempts=True,
    )
    for event in viewer.identity.find(address).logs(wanted):
        if lines := [line for line in _whole_lines(event) if fits(line)]:
            yield "".join(f"{line.stamp} {line.start.name} │ {line.text}\n" for line in lines).encode()


def _whole_lines(event: LogEvent) -> Iterator[LogLine]:
    if isinstance(event, Lines):
        yield from (LogLine(event.start, text, stamp or "-") for stamp, text in event.rows())


async def chunks(
    viewer: Viewer, address: Address, tasks: Sequence[str], choice: LogChoice
) -> AsyncIterator[bytes]:
    """What cannot be read at all raises; what comes later ends with the reason: the answer has begun by then."""
    found, chunk = text(viewer, address, tasks, choice), b""
    while True:
        try:
            chunk = await aio.in_thread(next, found, b"")
        except (TfyardError, OSError) as problem:  # OSError: the folder of a run was removed meanwhile
            if not chunk and isinstance(problem, TfyardError):
                raise
            yield f"{TOOL} the rest cannot be read: {problem}\n".encode()
            return
        if not chunk:
            return
        yield chunk
