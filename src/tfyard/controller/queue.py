"""Which job is looked at next. Each waits in line once, however often it changed; nobody is looked at twice at
the same time; who fails waits longer each time; and first come is first served, so no job starves the others."""

import asyncio
import random
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 60.0


class Queue(Generic[K]):
    def __init__(self) -> None:
        self._line: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: set[K] = set()
        self._busy: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = False

    def __len__(self) -> int:
        return self._line.qsize()

    @property
    def is_idle(self) -> bool:
        """Nobody is looked at, and nobody who waits will be."""
        return not self._busy and (self._closed or self._line.empty())

    def add(self, key: K, delay: float = 0.0) -> None:
        """Later additions never put off an earlier one."""
        if key in self._waiting:
            return
        if delay > 0:
            self._later(key, delay)
            return
        self._cancel(key)
        self._waiting.add(key)
        if key not in self._busy:
            self._line.put_nowait(key)

    async def get(self) -> K:
        key = await self._line.get()
        if self._closed:
            await asyncio.Event().wait()
        self._waiting.discard(key)
        self._busy.add(key)
        self._quiet.clear()
        return key

    def done(self, key: K) -> None:
        """What changed meanwhile is looked at again."""
        self._busy.discard(key)
        if not self._busy:
            self._quiet.set()
        if key in self._waiting:
            self._line.put_nowait(key)

    async def close(self) -> None:
        """Nobody gets anything any more; returns when nothing is under way."""
        self._closed = True
        await self._quiet.wait()

    def retry(self, key: K) -> float:
        """After a failure: ever later, with jitter, and how much later it is this time."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        grown = min(LONGEST_PAUSE, FIRST_PAUSE * float(2 ** min(failures - 1, 20)))
        pause = grown * random.uniform(0.8, 1.2)
        self.add(key, pause)
        return pause

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def _later(self, key: K, delay: float) -> None:
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + delay:
            return
        self._cancel(key)
        self._timers[key] = loop.call_later(delay, self._due, key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _cancel(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
