"""Measures the page: how long the server takes for the first page of 1,000 jobs of 4 tasks each on a real control
plane, what the apiserver is asked for one tab and for 100, and what 100 tabs on a flood of lines keep in memory.

python bench/dashboard.py [JOBS [TABS [LINES A SECOND]]]
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from aiohttp import web
from terminal import fill, install

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.dashboard.counting import Counting, counting
from tests.dashboard.many import PODS, READ, account
from tfyard.dashboard import app
from tfyard.dashboard.feed import KEPT, LONGEST, Feed
from tfyard.dashboard.live import LogView
from tfyard.dashboard.people import OfferedJobs, People, SessionLimits
from tfyard.dashboard.security import LOOPBACK, PageSettings
from tfyard.dashboard.signing_in import SigningIn
from tfyard.logs.lines import Lines, LogEvent, Start, Wanted
from tfyard.overview.waiting import WaitResult
from tfyard.testing import ControlPlane

LONGEST_FIRST_PAGE = 0.2
ROUNDS, WATCHED, FLOOD = 10, 10.0, 5.0


def verdict(is_met: bool) -> str:
    return "ok" if is_met else "MISSED"


async def first_page(session: aiohttp.ClientSession, url: str) -> tuple[float, float]:
    """Seconds until the page is there: when nothing was read yet, and the best of those after."""
    times = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        async with session.get(url) as answer:
            assert "1–100 of" in await answer.text() or answer.status == 200
        times.append(time.perf_counter() - started)
    return times[0], min(times[1:])


async def asked_while(counter: Counting, session: aiohttp.ClientSession, url: str, tabs: int) -> int:
    """Requests to the apiserver while so many tabs look."""
    before = counter.total()
    async with AsyncExitStack() as opened:
        streams = [await opened.enter_async_context(session.get(f"{url}live")) for _ in range(tabs)]
        readers = [asyncio.create_task(_drain(each)) for each in streams]
        await asyncio.sleep(WATCHED)
        for reader in readers:
            reader.cancel()
    return counter.total() - before


async def _drain(stream: aiohttp.ClientResponse) -> None:
    async for _ in stream.content.iter_any():
        pass


async def of_cluster(plane: ControlPlane, jobs: int, tabs: int) -> None:
    token = await asyncio.to_thread(account, plane, "many", "reader", [READ, PODS])
    async with counting(plane) as counter, AsyncExitStack() as stack:
        people = People(OfferedJobs(cluster=counter.cluster), SessionLimits())
        settings = PageSettings(hosts=frozenset(LOOPBACK))
        runner = web.AppRunner(app.make(SigningIn(people), settings), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers={"Authorization": f"Bearer {token}"}
            )
        )
        cold, warm = await first_page(session, url)
        one, all_ = [await asked_while(counter, session, url, each) for each in (1, tabs)]
    print(
        f"first page of {jobs:,} jobs x 4: {warm * 1000:.0f} ms (target {LONGEST_FIRST_PAGE * 1000:.0f} ms) "
        f"{verdict(warm < LONGEST_FIRST_PAGE)}; {cold * 1000:.0f} ms with sign-in and the first list"
    )
    print(
        f"requests to the apiserver in {WATCHED:.0f} s: {one} with 1 tab, {all_} with {tabs} tabs "
        f"{verdict(all_ <= 2 * one + 10)}"
    )


class Flood:
    """A log in which so many lines a second are written, until it has ended."""

    def __init__(self, lines_a_second: int) -> None:
        self.rate, self.written = lines_a_second, 0

    async def follow(self, _: Wanted) -> AsyncIterator[LogEvent | WaitResult | None]:
        started = time.monotonic()
        while (passed := time.monotonic() - started) < FLOOD:
            due = int(passed * self.rate) - self.written
            texts = [b"step %d: %s" % (self.written + turn, b"x" * 80) for turn in range(due)]
            self.written += due
            if texts:
                yield Lines(Start("worker-0"), texts)
            await asyncio.sleep(0.01)


async def of_flood(tabs: int, rate: int) -> None:
    flood = Flood(rate)
    feed = Feed(flood, ["worker-0"], lambda: None)  # type: ignore[arg-type]
    views = [LogView(feed, lambda _line: True, ["worker-0"], 0) for _ in range(tabs)]
    shown = skipped = most = 0
    while not feed.end:
        if not feed._background._thread.is_alive():
            break
        for view in views:
            if update := view.update():
                skipped += update.skipped
                shown += update.html.count("<li")
        gc.collect(0)
        most = max(most, sum(len(line.text) for line in feed.newest(lambda _line: True, KEPT).lines))
        await asyncio.sleep(0.25)
    for view in views:
        if update := view.update():
            skipped, shown = skipped + update.skipped, shown + update.html.count("<li")
    per_tab = (shown + skipped) / tabs
    print(
        f"a flood of {flood.written / FLOOD:,.0f} lines a second, {tabs} tabs: at most {most / 1024:.0f} KiB of "
        f"lines kept (bound {KEPT * LONGEST / 1024:.0f} KiB) {verdict(most <= KEPT * LONGEST)}; of "
        f"{flood.written:,} lines each tab was told {per_tab:,.0f}, {skipped / (shown + skipped):.0%} of them as "
        f"skipped {verdict(per_tab == flood.written)}"
    )


def main() -> None:
    jobs, tabs, rate = (*map(int, sys.argv[1:]), *(1000, 100, 50_000)[len(sys.argv) - 1 :])
    asyncio.run(of_flood(tabs, rate))
    with ControlPlane() as plane:
        asyncio.run(install(plane))
        fill(plane, "many", jobs)
        asyncio.run(of_cluster(plane, jobs, tabs))


if __name__ == "__main__":
    main()
