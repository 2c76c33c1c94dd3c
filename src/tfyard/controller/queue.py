"""The queue of jobs to reconcile. A job waits in it once, however often it changed, and is never reconciled twice
at the same time; a failed job is retried later each time; first in, first out, so no job starves the others."""

import asyncio
import random
from collections.abc import Hashable
from typing import Generic, TypeVar

from tfyard.model.backoff import Backoff

K = TypeVar("K", bound=Hashable)

RETRY = Backoff(first=0.1, longest=60.0, jitter=0.2)


class Queue(Generic[K]):
    def __init__(self) -> None:
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: set[K] = set()
        self._busy: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._backoffs: dict[K, Backoff] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = False

    def __len__(self) -> int:
        return self._ready.qsize()

    @property
    def is_idle(self) -> bool:
        """Nothing is being reconciled, and nothing is ready to be."""
        return not self._busy and (self._closed or self._ready.empty())

    def add(self, key: K, delay: float = 0.0) -> None:
        """A later addition never delays an earlier one."""
        if key in self._waiting:
            return
        if delay > 0:
            self._add_later(key, delay)
            return
        self._cancel_timer(key)
        self._waiting.add(key)
        if key not in self._busy:
            self._ready.put_nowait(key)

    async def get(self) -> K:
        key = await self._ready.get()
        if self._closed:
            await asyncio.Event().wait()
        self._waiting.discard(key)
        self._busy.add(key)
        self._quiet.clear()
        return key

    def done(self, key: K) -> None:
        """A key that was added while it was being reconciled is ready again."""
        self._busy.discard(key)
        if not self._busy:
            self._quiet.set()
        if key in self._waiting:
            self._ready.put_nowait(key)

    async def close(self) -> None:
        """`get` returns nothing any more; returns when nothing is being reconciled."""
        self._closed = True
        await self._quiet.wait()

    def retry(self, key: K) -> float:
        """Add it with a back-off after a failure; returns the delay in seconds."""
        backoff = self._backoffs[key] = self._backoffs.get(key, RETRY).next()
        delay = backoff.delay(random.random())
        self.add(key, delay)
        return delay

    def reset_backoff(self, key: K) -> None:
        """After a success."""
        self._backoffs.pop(key, None)

    def _add_later(self, key: K, delay: float) -> None:
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + delay:
            return
        self._cancel_timer(key)
        self._timers[key] = loop.call_later(delay, self._on_timer, key)

    def _on_timer(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _cancel_timer(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
