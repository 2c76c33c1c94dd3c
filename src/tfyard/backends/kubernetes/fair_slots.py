"""Slots for requests in flight, divided so that slow requests of one tenant never take the slots of another.

A namespace may hold at most half of the slots that the others leave, and a job half of what the other jobs leave
of these, so a newcomer finds a free one at once. While several wait, the next slot goes to the namespace with the
fewest in flight, and there to the job with the fewest.
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
        self._waiting: dict[SlotOwner, deque[asyncio.Future[None]]] = {}

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
        self._waiting.setdefault(owner, deque()).append(granted)
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
            line = self._waiting[owner]
            granted = line.popleft()
            if not line:
                del self._waiting[owner]
            if not granted.done():
                self._count(owner, 1)
                granted.set_result(None)

    def _next(self) -> SlotOwner | None:
        free = filter(self._may_take, self._waiting)
        return min(
            free, key=lambda owner: (self._namespaces[owner.namespace], self._jobs[owner]), default=None
        )

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
