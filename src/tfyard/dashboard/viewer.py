"""One user of the page, with everything that was read for them: it is never shown to another."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from tfyard import aio
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.board import JobsBoard
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.feed import Feed
from tfyard.dashboard.identity import ViewerIdentity
from tfyard.dashboard.opened import Opened
from tfyard.errors import NotPossible, TfyardError
from tfyard.overview.job_table import state
from tfyard.sdk.place import Done, Intent

LOG = logging.getLogger("tfyard")
MOST_NOTICES, MOST_REQUESTS = 50, 200
"""Messages that are kept, and requests of one user at the same time; each open tab has one, its stream."""
MOST_FEEDS = 20
"""Logs that are followed at the same time for one user; each keeps some thousand lines."""

FEED_KEPT, AGAIN = 30.0, 10.0
"""Seconds for which a log is still followed after the last tab has left it: a reload finds it; and from its end
until it is read again if the job runs."""


class Busy(TfyardError):
    """The page serves as many users and tabs as it can; a further one is refused."""


class DrawnPage(Struct, frozen=True):
    """The parts of a page at one moment."""

    parts: list[PagePart]
    version: int
    """Version of the board at that moment."""
    at: float


class Viewer:
    def __init__(self, identity: ViewerIdentity) -> None:
        self.identity = identity
        self.board = JobsBoard(identity)
        self.opened = Opened()
        self.requests = 0
        """Number of requests in progress, such as streams."""
        self.drawn: OrderedDict[Hashable, DrawnPage] = OrderedDict()
        """What tabs show -> its parts, as they were drawn a moment ago."""
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[Address, Feed] = {}
        self._making = asyncio.Lock()
        self._waits: set[asyncio.Task[None]] = set()
        self._notices: OrderedDict[str, list[str]] = OrderedDict()

    @contextmanager
    def asked(self) -> Iterator[None]:
        if self.requests >= MOST_REQUESTS:
            raise Busy(f"{self.requests} tabs of this page are open: close some of them first")
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    async def close(self) -> None:
        """Forget what was read, and end open streams."""
        await self.opened.close()
        for feed in self._feeds.values():
            await asyncio.to_thread(feed.close)
        self._feeds.clear()
        await self.board.close()

    # --- actions

    def finish(self, intent: Intent, done: Done) -> None:
        """Wait for the end of an action that its caller must wait for, without keeping the page waiting."""
        if done.is_waited_for:
            task = asyncio.create_task(aio.in_thread(self._finished, intent, done))
            self._waits.add(task)
            task.add_done_callback(self._waits.discard)

    def _finished(self, intent: Intent, done: Done) -> None:
        try:
            for _ in done.wait(lambda _text: None, 0.0):
                pass
        except TfyardError as problem:
            LOG.warning("%s: %s", intent.heading, problem)

    def notice(self, texts: Sequence[str]) -> str:
        """Keep a message for the next page; the result is its number in the address."""
        number = secrets.token_hex(4)
        self._notices[number] = list(texts)
        while len(self._notices) > MOST_NOTICES:
            self._notices.popitem(last=False)
        return number

    def noticed(self, number: str) -> list[str]:
        return self._notices.get(number, [])

    # --- logs

    async def feed(self, address: Address, tasks: Sequence[str]) -> Feed:
        """The log of a job. The caller must `leave` it."""
        async with self._making:
            feed = self._feeds.get(address)
            if feed is None or self.is_outdated(address, feed):
                self.forget_feed(address)
                self._require_room()
                place = await aio.in_thread(self.identity.find, address)
                feed = self._feeds[address] = Feed(place, tasks)
            feed.tabs += 1
            return feed

    def is_outdated(self, address: Address, feed: Feed) -> bool:
        """Whether the log has to be read anew: it has ended, and the job runs again, or could not be read."""
        if self._feeds.get(address) is not feed:
            return True
        row = self.board.rows.get(address)
        if not feed.end or row is None or row.is_over or state(row.job) == "Suspended":
            return False
        return time.monotonic() - feed.ended > AGAIN

    def _require_room(self) -> None:
        unused = [address for address, feed in self._feeds.items() if feed.tabs <= 0]
        if len(self._feeds) < MOST_FEEDS:
            return
        if not unused:
            raise NotPossible(f"the logs of {MOST_FEEDS} jobs are open: close some of these pages first")
        self.forget_feed(unused[0])

    def leave(self, address: Address, feed: Feed) -> None:
        feed.tabs -= 1
        self._loop.call_later(FEED_KEPT, self._close_unused, address, feed)

    def forget_feed(self, address: Address) -> None:
        """Stop following the log; tabs that show it read it again from the beginning."""
        if feed := self._feeds.pop(address, None):
            self._loop.run_in_executor(None, feed.close)

    def _close_unused(self, address: Address, feed: Feed) -> None:
        if feed.tabs <= 0 and self._feeds.get(address) is feed:
            self.forget_feed(address)
