"""One user of the page, with everything that was read for them: it is never shown to another."""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from tfyard import aio
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.board import JobsBoard
from tfyard.dashboard.feed import Feed
from tfyard.dashboard.identity import ViewerIdentity
from tfyard.dashboard.opened import Opened
from tfyard.errors import NotPossible, TfyardError
from tfyard.sdk.place import Done, Intent

LOG = logging.getLogger("tfyard")
MOST_NOTICES = 50
MOST_FEEDS = 20
"""Logs that are followed at the same time for one user; each keeps some thousand lines."""

FEED_KEPT = 30.0
"""Seconds for which a log is still followed after the last tab has left it: a reload finds it."""


class _Used(Struct):
    feed: Feed
    tabs: int = 0


class Viewer:
    def __init__(self, identity: ViewerIdentity) -> None:
        self.identity = identity
        self.board = JobsBoard(identity)
        self.opened = Opened()
        self.requests = 0
        """Requests that go on, such as streams."""
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[Address, _Used] = {}
        self._making = asyncio.Lock()
        self._waits: set[asyncio.Task[None]] = set()
        self._notices: OrderedDict[str, list[str]] = OrderedDict()

    @contextmanager
    def asked(self) -> Iterator[None]:
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    async def close(self) -> None:
        """What was read is forgotten, and open streams end."""
        await self.opened.close()
        for used in self._feeds.values():
            await asyncio.to_thread(used.feed.close)
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
            used = self._feeds.get(address)
            if used is not None and used.feed.end and used.tabs <= 0:
                self.forget_feed(address)  # the job may run again
                used = None
            if used is None:
                self._require_room()
                place = await aio.in_thread(self.identity.find, address)
                used = self._feeds[address] = _Used(Feed(place, tasks, lambda: None))
            used.tabs += 1
            return used.feed

    def _require_room(self) -> None:
        unused = [address for address, used in self._feeds.items() if used.tabs <= 0]
        if len(self._feeds) < MOST_FEEDS:
            return
        if not unused:
            raise NotPossible(f"the logs of {MOST_FEEDS} jobs are open: close some of these pages first")
        self.forget_feed(unused[0])

    def leave(self, address: Address) -> None:
        used = self._feeds.get(address)
        if used is not None:
            used.tabs -= 1
            self._loop.call_later(FEED_KEPT, self._close_unused, address, used)

    def forget_feed(self, address: Address) -> None:
        """After a job was resumed, its log has to be followed anew."""
        if used := self._feeds.pop(address, None):
            self._loop.run_in_executor(None, used.feed.close)

    def _close_unused(self, address: Address, used: _Used) -> None:
        if used.tabs <= 0 and self._feeds.get(address) is used:
            self.forget_feed(address)
