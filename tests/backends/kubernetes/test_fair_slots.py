"""Slots are divided fairly: slow requests of one tenant do not delay other tenants."""

import asyncio
from contextlib import AsyncExitStack

from tfyard.backends.kubernetes.fair_slots import FairSlots


class Crowd:
    """Requests that hold their slot until they are told to end."""

    def __init__(self, total: int = 16, per_job: int = 8) -> None:
        self.slots = FairSlots(total, per_job)
        self.held: list[tuple[str, str]] = []
        self.ends: dict[tuple[str, str], list[asyncio.Event]] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, namespace: str, job: str, count: int) -> None:
        for _ in range(count):
            end = asyncio.Event()
            self.ends.setdefault((namespace, job), []).append(end)
            self.tasks.append(asyncio.create_task(self._hold(namespace, job, end)))
        await self.settle()

    async def _hold(self, namespace: str, job: str, end: asyncio.Event) -> None:
        async with self.slots.slot(namespace, job):
            self.held.append((namespace, job))
            await end.wait()
            self.held.remove((namespace, job))

    async def end_one(self, namespace: str, job: str) -> None:
        self.ends[namespace, job].pop(0).set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    def count(self, namespace: str, job: str | None = None) -> int:
        return sum(ns == namespace and job in (None, name) for ns, name in self.held)

    async def __aenter__(self) -> "Crowd":
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_a_newcomer_finds_a_free_slot_whatever_the_others_hold() -> None:
    async with Crowd() as crowd:
        for job in ("a", "b", "c"):
            await crowd.start("slow", job, 100)
        assert crowd.count("slow") == 8, "half of all"
        await crowd.start("other", "x", 100)
        assert crowd.count("other") == 4, "half of the rest"
        await crowd.start("third", "y", 1)
        assert crowd.count("third") == 1


async def test_a_freed_slot_goes_to_the_namespace_and_job_with_the_fewest() -> None:
    async with Crowd(total=8, per_job=4) as crowd:
        await crowd.start("slow", "a", 10)
        await crowd.start("slow", "b", 10)
        assert (crowd.count("slow", "a"), crowd.count("slow", "b")) == (4, 0)
        await crowd.end_one("slow", "a")
        assert (crowd.count("slow", "a"), crowd.count("slow", "b")) == (3, 1)
        for namespace in ("v", "w", "x", "y", "z"):
            await crowd.start(namespace, "job", 5)
        assert all(crowd.count(namespace) >= 1 for namespace in ("v", "w"))
        before = crowd.count("slow")
        await crowd.end_one("slow", "a")
        assert crowd.count("slow") < before, "others wait and have fewer"


async def test_one_job_uses_what_is_idle_up_to_its_limit() -> None:
    async with Crowd() as crowd:
        await crowd.start("ns", "one", 100)
        assert crowd.count("ns") == 8


async def test_requests_that_are_cancelled_leave_nothing_behind() -> None:
    crowd = Crowd()
    async with crowd:
        await crowd.start("ns", "one", 100)
    async with AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(crowd.slots.slot("ns", "one"))
        assert crowd.slots._in_flight == 8
    assert crowd.slots._in_flight == 0


async def test_every_request_gets_its_turn() -> None:
    slots, done = FairSlots(4, 2), 0

    async def request(namespace: str, job: str) -> None:
        nonlocal done
        async with slots.slot(namespace, job):
            await asyncio.sleep(0)
            done += 1

    names = [(f"ns{number % 7}", f"job{number % 3}") for number in range(500)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(request(*name) for name in names))
    assert done == 500
