"""The queue: each key once, none twice at the same time, and back-off after a failure."""

import asyncio

import pytest

from tfyard.controller.queue import RETRY, Queue


def queue_of_one_tenant() -> Queue[str]:
    return Queue(16, lambda _: "tenant")


def tenant(key: str) -> str:
    """Keys are written tenant/job."""
    return key.partition("/")[0]


async def test_a_job_that_changed_ten_times_is_looked_at_once() -> None:
    queue = queue_of_one_tenant()
    for _ in range(10):
        queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_first_come_is_first_served() -> None:
    queue = queue_of_one_tenant()
    for key in ("a", "b", "a", "c"):
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


async def test_what_changes_while_it_is_looked_at_is_looked_at_again_afterwards() -> None:
    queue = queue_of_one_tenant()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"


async def test_a_later_time_never_puts_off_an_earlier_one() -> None:
    queue = queue_of_one_tenant()
    queue.add("a", 0.01)
    queue.add("a", 100.0)
    assert await asyncio.wait_for(queue.get(), 50) == "a"


async def test_an_earlier_time_goes_before_a_later_one() -> None:
    queue = queue_of_one_tenant()
    queue.add("a", 100.0)
    queue.add("a", 0.01)
    assert await asyncio.wait_for(queue.get(), 50) == "a"


async def test_a_job_that_waits_for_later_is_taken_at_once_if_it_changes() -> None:
    queue = queue_of_one_tenant()
    queue.add("a", 100.0)
    queue.add("a")
    assert await asyncio.wait_for(queue.get(), 50) == "a"


async def test_a_failed_key_waits_longer_each_time_up_to_a_limit_and_success_resets_that() -> None:
    queue = queue_of_one_tenant()
    pauses = [queue.retry("a") for _ in range(30)]
    assert pauses[0] < pauses[4] < pauses[8]
    assert max(pauses) <= RETRY.longest
    queue.reset_backoff("a")
    assert queue.retry("a") < pauses[4]


async def test_nothing_is_left_of_a_thousand_jobs_that_were_deleted() -> None:
    queue = queue_of_one_tenant()
    for number in range(1000):
        queue.add(f"job-{number}", 3600.0)
        queue.retry(f"job-{number}")
        queue.forget(f"job-{number}")
    assert [len(each) for each in (queue._timers, queue._backoffs, queue._waiting)] == [0, 0, 0]


async def test_a_closed_queue_returns_no_job_and_waits_for_those_in_progress() -> None:
    queue = queue_of_one_tenant()
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "a"
    closing = asyncio.create_task(queue.close())
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 0.05)
    assert not closing.done()
    queue.done("a")
    await asyncio.wait_for(closing, 30)


async def test_tenants_take_turns() -> None:
    queue = Queue[str](16, tenant)
    for key in ("a/1", "a/2", "a/3", "b/1", "b/2", "c/1"):
        queue.add(key)
    assert [await queue.get() for _ in range(6)] == ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]


async def test_a_tenant_whose_jobs_take_long_leaves_workers_for_the_others() -> None:
    queue, taken = Queue[str](8, tenant), list[str]()

    async def work() -> None:
        while True:
            taken.append(await queue.get())
            await asyncio.Event().wait()

    workers = [asyncio.create_task(work()) for _ in range(8)]
    for number in range(100):
        queue.add(f"slow/{number}")
    await settle()
    assert len(taken) == 4, "half of all"
    queue.add("other/1")
    await settle()
    assert taken[4:] == ["other/1"]
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


async def test_what_had_to_wait_for_its_tenant_is_taken_when_a_worker_is_done() -> None:
    queue, done = Queue[str](4, tenant), list[str]()

    async def work() -> None:
        while True:
            key = await queue.get()
            await asyncio.sleep(0)
            done.append(key)
            queue.done(key)

    workers = [asyncio.create_task(work()) for _ in range(4)]
    for number in range(300):
        queue.add(f"{'abc'[number % 3]}/{number}")
    async with asyncio.timeout(30):
        while len(done) < 300:
            await asyncio.sleep(0)
    assert queue.is_idle
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
