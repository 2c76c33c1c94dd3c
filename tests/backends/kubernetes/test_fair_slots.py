"""Slots are divided fairly: slow requests of one tenant do not delay other tenants."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tfyard.backends.kubernetes import events
from tfyard.backends.kubernetes.fair_slots import FairSlots, SlotOwner
from tfyard.backends.kubernetes.runner import PARALLEL_WRITES
from tfyard.controller.operator import WORKERS
from tfyard.kube.transport import DEFAULT_LIMITS


class Crowd:
    """Requests that hold their slot until they are told to end."""

    def __init__(self, total: int = 32) -> None:
        self.slots = FairSlots(total)
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
        for job in "abcdefgh":
            await crowd.start("slow", job, 100)
        assert crowd.count("slow") == 16, "half of all"
        await crowd.start("other", "x", 100)
        await crowd.start("other", "y", 100)
        assert (crowd.count("other", "x"), crowd.count("other", "y")) == (4, 2), "of half of the rest"
        await crowd.start("third", "z", 1)
        assert crowd.count("third") == 1


async def test_another_job_of_the_same_namespace_finds_a_free_slot_too() -> None:
    async with Crowd() as crowd:
        for job, count in (("a", 8), ("b", 4), ("c", 2), ("d", 1)):
            await crowd.start("slow", job, 100)
            assert crowd.count("slow", job) == count, (
                "half of what the other jobs leave of the namespace's 16"
            )


async def test_a_freed_slot_goes_to_the_namespace_and_job_with_the_fewest() -> None:
    async with Crowd() as crowd:
        for job in "abcdef":
            await crowd.start("slow", job, 10)
        assert [crowd.count("slow", job) for job in "abcdef"] == [8, 4, 2, 1, 1, 0], "all that it may have"
        await crowd.end_one("slow", "a")
        assert [crowd.count("slow", job) for job in "abcdef"] == [7, 4, 2, 1, 1, 1]
        for namespace in ("v", "w", "x", "y", "z"):
            await crowd.start(namespace, "job", 5)
        assert all(crowd.count(namespace) >= 1 for namespace in ("v", "w", "x"))
        before = crowd.count("slow")
        await crowd.end_one("slow", "a")
        assert crowd.count("slow") < before, "others wait and have fewer"


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
    slots, done = FairSlots(4), 0

    async def request(namespace: str, job: str) -> None:
        nonlocal done
        async with slots.slot(namespace, job):
            await asyncio.sleep(0)
            done += 1

    names = [(f"ns{number % 7}", f"job{number % 3}") for number in range(500)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(request(*name) for name in names))
    assert done == 500


@pytest.mark.parametrize("busy", [2, 3, 4, 8])
async def test_busy_namespaces_have_equal_shares_and_leave_one_for_a_newcomer(busy: int) -> None:
    async with Crowd(128) as crowd:
        names = [f"ns-{number}" for number in range(busy)]
        for name in names:
            for job in range(40):
                await crowd.start(name, f"job-{job}", 40)
        for _ in range(
            200
        ):  # requests end, those of the namespace with the most first, and others wait in line
            most = max(names, key=crowd.count)
            job = next(job for namespace, job in crowd.held if namespace == most)
            await crowd.end_one(most, job)
        shares = [crowd.count(name) for name in names]
        assert max(shares) - min(shares) <= 2, shares
        assert max(shares) <= (128 // 4 if busy >= 3 else 128 // 2), shares
        assert sum(shares) >= 128 // 2, "idle slots are used"
        await crowd.start("newcomer", "job", 1)
        assert crowd.count("newcomer") == 1


async def test_a_slot_that_is_freed_is_granted_without_asking_all_who_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 1,000 jobs in line, each release asked every one of them."""
    slots, asked, may_take = FairSlots(32), 0, FairSlots._may_take

    def counted(self: FairSlots, owner: SlotOwner) -> bool:
        nonlocal asked
        asked += 1
        return may_take(self, owner)

    monkeypatch.setattr(FairSlots, "_may_take", counted)

    async def request(number: int) -> None:
        async with slots.slot(f"ns{number % 5}", f"job{number}"):
            await asyncio.sleep(0)

    await asyncio.gather(*map(request, range(1000)))
    assert asked < 20_000
    assert slots._waiting == {}


def test_the_client_has_a_connection_for_all_that_an_operator_sends_at_once() -> None:
    """Its queue is first come, first served: whoever waits in it waits for the slow requests of others, too."""
    assert DEFAULT_LIMITS.connections >= PARALLEL_WRITES + WORKERS + events.AT_ONCE
