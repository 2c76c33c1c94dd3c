"""A program that writes more than anybody reads, and a hundred tabs of which some never read: over real HTTP
streams, what is held for them is bounded, and each line that a tab is not shown is counted."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec import Struct

from tfyard.dashboard import app, feed
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.identity import JobSource, ViewerIdentity
from tfyard.dashboard.one_user import TOKEN, OneUser
from tfyard.dashboard.security import LOOPBACK, PageSettings
from tfyard.dashboard.viewer import Viewer
from tfyard.sdk.place import Place
from tfyard.sdk.runs_on_machine import RunsOnMachine
from tfyard.testing import eventually

pytestmark = [
    pytest.mark.processes,
    # Keys of requests that are no words came with aiohttp 3.14; the page runs with 3.12, too.
    pytest.mark.filterwarnings("ignore::aiohttp.web_exceptions.NotAppKeyWarning"),
]
TABS, STUCK, LINES, BURST, WIDTH = 70, 30, 400_000, 50_000, 200
KERNEL = 1 << 14
"""Bytes that the system keeps at each end of a connection; what it does not, the server has to."""
HIGH_WATER = 1 << 16
"""Bytes that asyncio keeps of a connection before it lets the writer wait."""
FLOODS = f"""
import pathlib, time
print("begins", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.02)
for first in range(0, {LINES}, {BURST}):
    print("\\n".join(f"line {{at}} ".ljust({WIDTH}, "x") for at in range(first, first + {BURST})), flush=True)
    time.sleep(0.5)
"""


class Tab(Struct):
    """What one stream has told so far."""

    shown: int = 0
    skipped: int = 0
    largest: int = 0
    """Bytes of the largest message."""
    has_ended: bool = False

    def take(self, message: bytes) -> None:
        self.largest = max(self.largest, len(message))
        log: dict[str, Any] = json.loads(message.removeprefix(b"data: ")).get("log") or {}
        self.shown += log.get("html", "").count("<li id=")
        self.skipped += log.get("skipped", 0)
        self.has_ended = bool(log.get("end"))


class Page(Struct):
    url: str
    runner: web.AppRunner
    viewer: Viewer

    def held_for_each_tab(self) -> list[int]:
        """Bytes that were written to a stream and that nobody has taken yet."""
        assert self.runner.server
        transports = [each.transport for each in self.runner.server.connections]
        return [each.get_write_buffer_size() for each in transports if each]


@asynccontextmanager
async def paged() -> AsyncIterator[Page]:
    """The page at a real port, in this process, so that what it holds can be counted."""
    viewer = Viewer(of_this_folder())
    user = OneUser(viewer)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL)
    settings = PageSettings(hosts=frozenset(LOOPBACK))
    runner = web.AppRunner(app.make(user, settings), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        root = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        yield Page(f"{root}?{TOKEN}={user.new_token()}", runner, viewer)
    finally:
        await runner.cleanup()


def of_this_folder() -> ViewerIdentity:
    runs = RunsOnMachine()

    def find(address: Address) -> Place:
        return next(place for place in runs.places() if place.name == address.name)

    return ViewerIdentity(sources=[JobSource("this machine", runs)], find=find)


def small_socket(_: Any) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL)
    return made


@contextmanager
def flooding(folder: Path) -> Iterator[None]:
    (folder / "flood.py").write_text(FLOODS)
    with subprocess.Popen([sys.executable, "-m", "tfyard", "run", "flood.py", "-q"], cwd=folder) as process:
        try:
            yield
        finally:
            process.terminate()


async def messages(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    seen = bytearray()
    async for chunk in answer.content.iter_any():
        seen += chunk
        while (end := seen.find(b"\n\n")) >= 0:
            yield bytes(seen[:end])
            del seen[: end + 2]


async def read(tab: Tab, stream: AsyncIterator[bytes], *, until_lines: int | None = None) -> None:
    """Until the log has ended, or so many lines were shown."""
    async for message in stream:
        tab.take(message)
        if tab.has_ended or tab.shown == until_lines:
            return


async def test_a_hundred_tabs_on_a_flood_cost_bounded_memory_and_all_lines_that_are_not_shown_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with flooding(tmp_path):
        async with AsyncExitStack() as stack:
            page = await stack.enter_async_context(paged())
            connector = aiohttp.TCPConnector(limit=0, socket_factory=small_socket)
            jar = aiohttp.CookieJar(unsafe=True)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=connector, cookie_jar=jar, read_bufsize=KERNEL)
            )
            async with session.get(page.url) as entered:
                assert entered.status == 200
            (address,) = await eventually_listed(page.viewer)
            url = f"{page.url.partition('?')[0]}{address.path}live"
            tabs = [Tab() for _ in range(TABS + STUCK)]
            answers = [await stack.enter_async_context(session.get(url)) for _ in tabs]
            streams = [messages(answer) for answer in answers]
            both = list(zip(tabs, streams, strict=True))
            await asyncio.gather(*(read(*each, until_lines=1) for each in both))
            (tmp_path / "go").touch()
            await asyncio.gather(*(read(*each) for each in both[:TABS]))
            assert_memory_is_bounded(page, max(tab.largest for tab in tabs))
            kept = await kept_lines(page.viewer, address)
            assert len(kept) <= feed.KEPT
            assert sum(len(line.text) for line in kept) <= feed.MOST_CHARACTERS
            assert not any(tab.has_ended for tab in tabs[TABS:]), "they have not read yet"
            await asyncio.gather(*(read(*each) for each in both[TABS:]))
        assert {tab.shown + tab.skipped for tab in tabs} == {1 + LINES}
        assert min(tab.skipped for tab in tabs[TABS:]) > LINES / 2


async def eventually_listed(viewer: Viewer) -> list[Address]:
    async def listed() -> None:
        assert viewer.board.rows
        (row,) = viewer.board.rows.values()
        assert row.job.status.phase == "Running"

    await eventually(listed)
    return list(viewer.board.rows)


def assert_memory_is_bounded(page: Page, largest: int) -> None:
    """Whoever does not read is owed one message, and not the flood."""
    held = page.held_for_each_tab()
    assert max(held) <= largest + HIGH_WATER
    assert sum(held) < LINES * WIDTH


async def kept_lines(viewer: Viewer, address: Address) -> list[feed.LogLine]:
    known = await viewer.feed(address, [])
    try:
        return known.newest(lambda _: True, 1 << 30).lines
    finally:
        viewer.leave(address, known)
