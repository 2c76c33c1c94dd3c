"""Slots for requests in flight, divided so that slow requests of one tenant never take the slots of another.

A namespace may hold at most half of the slots that the others leave, and a job half of what the other jobs leave
of these, so a newcomer finds a free one at once: from three busy namespaces on, each has a quarter at most. Fixed
shares would leave idle slots unused, and without any, a slow tenant that is alone would hold all. While several
wait, the next slot goes to the namespace with the fewest in flight, and there to the job with the fewest.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

T = TypeVar("T", bound=Hashable)


class SlotOwner(NamedTuple):
    namespace: str
    job: str


class FairSlots:
    def __init__(self, total: int) -> None:
        self._total, self._in_flight = total, 0
        self._namespaces: Counter[str] = Counter()
        self._jobs: Counter[SlotOwner] = Counter()
        self._waiting: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}
        """Namespace -> job -> its requests that wait; whoever was granted a slot last is at the end."""

    @asynccontextmanager
    async def slot(self, namespace: str, job: str) -> AsyncIterator[None]:
        owner = SlotOwner(namespace, job)
        if self._waiting or not self._may_take(owner):
            await self._wait(owner)
        else:
            self._count(owner, 1)
        try:
            yield
        finally:
            self._count(owner, -1)
            self._grant()

    async def _wait(self, owner: SlotOwner) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner.namespace, {}).setdefault(owner.job, deque()).append(granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # granted at the same moment
                self._count(owner, -1)
                self._grant()
            raise

    def _grant(self) -> None:
        """Gives free slots to requests that wait, and removes cancelled ones from the line."""
        while (owner := self._next()) is not None:
            granted = self._pop(owner)
            if not granted.done():
                self._count(owner, 1)
                granted.set_result(None)

    def _pop(self, owner: SlotOwner) -> asyncio.Future[None]:
        """The first request in the line of a job; the others of the job and its namespace go to the end."""
        jobs = self._waiting.pop(owner.namespace)
        line = jobs.pop(owner.job)
        granted = line.popleft()
        if line:
            jobs[owner.job] = line
        if jobs:
            self._waiting[owner.namespace] = jobs
        return granted

    def _next(self) -> SlotOwner | None:
        """Hardly any of thousands that wait hold a slot, so the search is short."""
        best: SlotOwner | None = None
        for namespace in self._waiting if self._in_flight < self._total else ():
            held = self._namespaces[namespace]
            if best is None or held < self._namespaces[best.namespace]:
                best = self._next_of(namespace) or best
            if not held:
                break
        return best

    def _next_of(self, namespace: str) -> SlotOwner | None:
        best: SlotOwner | None = None
        for job in self._waiting[namespace]:
            owner = SlotOwner(namespace, job)
            if (best is None or self._jobs[owner] < self._jobs[best]) and self._may_take(owner):
                best = owner
            if not self._jobs[owner]:
                break
        return best

    def _may_take(self, owner: SlotOwner) -> bool:
        own = self._namespaces[owner.namespace]
        left = self._total - self._in_flight + own
        share, of_job = max(1, left // 2), self._jobs[owner]
        return own < min(share, left) and of_job < max(1, (share - own + of_job) // 2)

    def _count(self, owner: SlotOwner, by: int) -> None:
        self._in_flight += by
        _add(self._namespaces, owner.namespace, by)
        _add(self._jobs, owner, by)


def _add(counter: Counter[T], name: T, by: int) -> None:
    counter[name] += by
    if not counter[name]:
        del counter[name]
