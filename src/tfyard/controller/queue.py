"""The queue of jobs to reconcile. A job waits in it once, however often it changed, and is never reconciled twice
at the same time. A failed reconcile is retried with back-off.

Tenants take turns, and the jobs of one tenant are first in, first out. A tenant has at most half of the workers
that the others leave: jobs whose requests are slow occupy their workers for long, and must leave some."""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from tfyard.model.backoff import Backoff

K = TypeVar("K", bound=Hashable)

RETRY = Backoff(first=0.1, longest=60.0, jitter=0.2)


class Queue(Generic[K]):
    def __init__(self, workers: int, tenant: Callable[[K], Hashable]) -> None:
        self._workers, self._tenant = workers, tenant
        self._ready: dict[Hashable, deque[K]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._waiting: set[K] = set()
        self._busy: set[K] = set()
        self._busy_of: Counter[Hashable] = Counter()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._backoffs: dict[K, Backoff] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._ready.values()))

    @property
    def is_idle(self) -> bool:
        """Whether no job is being reconciled or ready to be."""
        return not self._busy and (self._closed or not self._ready)

    def add(self, key: K, delay: float = 0.0) -> None:
        """Add a job, or make it ready earlier: a later addition never delays an earlier one."""
        if key in self._waiting:
            return
        if delay > 0:
            self._add_later(key, delay)
            return
        self._cancel_timer(key)
        self._waiting.add(key)
        if key not in self._busy:
            self._make_ready(key)

    async def get(self) -> K:
        while (tenant := self._next_tenant()) is None:
            await self._wait()
        if self._closed:
            await asyncio.Event().wait()
        key = self._take(tenant)
        self._wake()  # there may be more for the next worker
        return key

    def done(self, key: K) -> None:
        """End the reconcile of a job; if it was added meanwhile, it is ready again."""
        self._busy.discard(key)
        self._busy_of[self._tenant(key)] -= 1
        if not self._busy:
            self._busy_of.clear()
            self._quiet.set()
        if key in self._waiting:
            self._make_ready(key)
        else:
            self._wake()

    async def close(self) -> None:
        """Let `get` wait for ever, and return when no job is being reconciled."""
        self._closed = True
        await self._quiet.wait()

    def retry(self, key: K, least: float = 0.0) -> float:
        """Add a job with a back-off after a failure, and after these seconds at least; returns the delay."""
        backoff = self._backoffs[key] = self._backoffs.get(key, RETRY).next()
        delay = max(backoff.delay(random.random()), least)
        self.add(key, delay)
        return delay

    def reset_backoff(self, key: K) -> None:
        self._backoffs.pop(key, None)

    def forget(self, key: K) -> None:
        """Drop a deleted job's timer and back-off."""
        self._cancel_timer(key)
        self.reset_backoff(key)

    def _make_ready(self, key: K) -> None:
        self._ready.setdefault(self._tenant(key), deque()).append(key)
        self._wake()

    def _next_tenant(self) -> Hashable | None:
        """The next tenant in turn that may occupy another worker; None: there is none."""
        return next(filter(self._may_take, self._ready), None)

    def _may_take(self, tenant: Hashable) -> bool:
        own = self._busy_of[tenant]
        return own < max(1, (self._workers - len(self._busy) + own) // 2)

    def _take(self, tenant: Hashable) -> K:
        keys = self._ready.pop(tenant)
        key = keys.popleft()
        if keys:
            self._ready[tenant] = keys  # at the end: the others are next
        self._waiting.discard(key)
        self._busy.add(key)
        self._busy_of[tenant] += 1
        self._quiet.clear()
        return key

    async def _wait(self) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if not woken.cancelled():  # woken in the same moment
                self._wake()
            raise

    def _wake(self) -> None:
        """Wake one waiting worker, if a job can be taken."""
        if self._next_tenant() is None:
            return
        while self._getters:
            woken = self._getters.popleft()
            if not woken.done():
                woken.set_result(None)
                return

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
