"""Measures the page as a process of its own: what the first page of 1,000 jobs of 4 tasks each on a real control
plane costs it, what it and the apiserver do for one tab and for 100, and what 100 tabs on a flood of lines keep in
memory. Time of the processor is the page's own; wall time is that of a machine that does other things, too.

python bench/dashboard.py [JOBS [TABS [LINES A SECOND]]]
"""

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from msgspec import Struct
from terminal import fill, install

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.dashboard.counting import Counting, counting
from tests.dashboard.many import PODS, READ, account, many
from tfyard.dashboard.board import MOST_A_SECOND
from tfyard.dashboard.feed import MOST_CHARACTERS, Feed
from tfyard.dashboard.live import FLOODED, LogView
from tfyard.dashboard.log_lines import LogChoice
from tfyard.kube import Access, Client, User, kubeconfig, requests
from tfyard.kube.requests import TFJOBS
from tfyard.logs.lines import Lines, LogEvent, LogSelection, Start
from tfyard.overview.waiting import WaitResult
from tfyard.testing import ControlPlane, eventually

LONGEST_FIRST_PAGE, MOST_MEMORY = 0.2, 512
"""Seconds, and MB: half of what the chart lets the page have."""
REQUESTS_A_JOB = 6
ROUNDS, SETTLED, WATCHED, FLOOD = 20, 40.0, 20.0, 5.0


def verdict(is_met: bool) -> str:
    return "ok" if is_met else "MISSED"


class Cost(Struct, frozen=True):
    """What the page has used so far."""

    wall: float
    processor: float
    requests: int

    def since(self, before: "Cost") -> "Cost":
        passed = self.wall - before.wall
        return Cost(passed, self.processor - before.processor, self.requests - before.requests)


def cost(page: int, counter: Counting) -> Cost:
    words = Path(f"/proc/{page}/stat").read_text().rpartition(")")[2].split()
    processor = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return Cost(time.perf_counter(), processor, counter.total())


def memory(page: int) -> int:
    """MB at most so far."""
    status = Path(f"/proc/{page}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


async def first_page(session: aiohttp.ClientSession, url: str, jobs: int) -> None:
    async with session.get(url) as answer:
        text = await answer.text()
    assert f"All <b>{jobs}</b>" in text, text[:2000]


async def cost_of_tabs(
    page: int, counter: Counting, session: aiohttp.ClientSession, url: str, tabs: int
) -> Cost:
    """What so many tabs cost that have been open for a while."""
    async with AsyncExitStack() as opened:
        streams = [await opened.enter_async_context(session.get(f"{url}live")) for _ in range(tabs)]
        readers = [asyncio.create_task(_drain(each)) for each in streams]
        await asyncio.sleep(SETTLED)
        before = cost(page, counter)
        await asyncio.sleep(WATCHED)
        found = cost(page, counter).since(before)
        for reader in readers:
            reader.cancel()
    return found


async def _drain(stream: aiohttp.ClientResponse) -> None:
    async for _ in stream.content.iter_any():
        pass


async def of_cluster(plane: ControlPlane, jobs: int, tabs: int) -> None:
    token = await asyncio.to_thread(account, plane, "many", "reader", [READ, PODS])
    await eventually(lambda: may_list(plane, token))
    async with counting(plane) as counter, AsyncExitStack() as stack:
        config = plane.folder / "counted.yaml"
        config.write_text(kubeconfig.dump(Access(counter.cluster, User())))
        page = await asyncio.to_thread(stack.enter_context, many(config))
        url, pid = f"http://{page.host}/", page.process.pid
        headers, connector = {"Authorization": f"Bearer {token}"}, aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, headers=headers))
        started = cost(pid, counter)
        await first_page(session, url, jobs)
        cold = cost(pid, counter).since(started)
        await cost_of_tabs(pid, counter, session, url, 1)  # all of its jobs are read once
        before, wall = cost(pid, counter), []
        for _ in range(ROUNDS):
            started = cost(pid, counter)
            await first_page(session, url, jobs)
            wall.append(cost(pid, counter).since(started).wall)
        each = cost(pid, counter).since(before).processor / ROUNDS
        one, all_ = [await cost_of_tabs(pid, counter, session, url, count) for count in (1, tabs)]
        print(
            f"first page of {jobs:,} jobs x 4: {each * 1000:.0f} ms of processor time, {min(wall) * 1000:.0f} ms "
            f"(target {LONGEST_FIRST_PAGE * 1000:.0f} ms) {verdict(each < LONGEST_FIRST_PAGE)}; "
            f"{cold.processor * 1000:.0f} ms and {cold.wall * 1000:.0f} ms with sign-in and the first list"
        )
        most = MOST_A_SECOND * REQUESTS_A_JOB * WATCHED + 20
        print(
            f"requests to the apiserver in {WATCHED:.0f} s: {one.requests} with 1 tab, {all_.requests} with "
            f"{tabs} tabs (at most {most:.0f}) {verdict(max(one.requests, all_.requests) <= most)}"
        )
        print(
            f"the page's processor time in a second: {one.processor / one.wall:.2f} s with 1 tab, "
            f"{all_.processor / all_.wall:.2f} s with {tabs}; at most {memory(pid)} MB of memory "
            f"{verdict(memory(pid) < MOST_MEMORY)}"
        )


async def may_list(plane: ControlPlane, token: str) -> None:
    """The server knows a permission a moment after it was given."""
    async with Client(Access(plane.admin.cluster, User(token=token))) as client:
        await client.send(requests.get(TFJOBS.path("many"), {"limit": "1"}))


class Flood:
    """A log in which so many lines a second are written, until it has ended."""

    def __init__(self, lines_a_second: int) -> None:
        self.rate, self.written = lines_a_second, 0

    async def follow(self, _: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
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
    feed = Feed(flood, ["worker-0"])  # type: ignore[arg-type]
    views = [LogView(feed, LogChoice(), lambda _line: True, ["worker-0"]) for _ in range(tabs)]
    shown = skipped = most = 0
    spent = 0.0
    is_over = False
    while not is_over:
        is_over = not feed._background._thread.is_alive()
        await asyncio.sleep(FLOODED if not is_over else 0.3)
        started = time.thread_time()
        for view in views:
            if update := view.update():
                skipped, shown = skipped + update.skipped, shown + update.html.count("<li")
        spent += time.thread_time() - started
        gc.collect(0)
        most = max(most, feed._size)
    per_tab = (shown + skipped) / tabs
    print(
        f"a flood of {flood.written / FLOOD:,.0f} lines a second, {tabs} tabs: at most {most / 1024:.0f} KiB of "
        f"lines kept (bound {MOST_CHARACTERS / 1024:.0f} KiB) {verdict(most <= MOST_CHARACTERS)}; of "
        f"{flood.written:,} lines each tab was told {per_tab:,.0f}, {skipped / (shown + skipped):.0%} of them as "
        f"skipped {verdict(per_tab == flood.written)}; {spent / FLOOD:.3f} s of processor time in a second for "
        "the lines of all tabs"
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
