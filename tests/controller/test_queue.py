"""The queue: each once, nobody twice at the same time, who fails waits longer."""

import asyncio

import pytest

from tfyard.controller.queue import RETRY, Queue


async def test_a_job_that_changed_ten_times_is_looked_at_once() -> None:
    queue: Queue[str] = Queue()
    for _ in range(10):
        queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_first_come_is_first_served() -> None:
    queue: Queue[str] = Queue()
    for key in ("a", "b", "a", "c"):
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


async def test_what_changes_while_it_is_looked_at_is_looked_at_again_afterwards() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"


async def test_a_later_time_never_puts_off_an_earlier_one() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0.01)
    queue.add("a", 100.0)
    assert await asyncio.wait_for(queue.get(), 50) == "a"


async def test_an_earlier_time_goes_before_a_later_one() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 100.0)
    queue.add("a", 0.01)
    assert await asyncio.wait_for(queue.get(), 50) == "a"


async def test_a_job_that_waits_for_later_is_taken_at_once_if_it_changes() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 100.0)
    queue.add("a")
    assert await asyncio.wait_for(queue.get(), 50) == "a"


async def test_who_fails_waits_longer_each_time_up_to_a_limit_and_success_forgives() -> None:
    queue: Queue[str] = Queue()
    pauses = [queue.retry("a") for _ in range(30)]
    assert pauses[0] < pauses[4] < pauses[8]
    assert max(pauses) <= RETRY.longest
    queue.reset_backoff("a")
    assert queue.retry("a") < pauses[4]


async def test_nothing_is_left_of_a_thousand_jobs_that_were_deleted() -> None:
    queue: Queue[str] = Queue()
    for number in range(1000):
        queue.add(f"job-{number}", 3600.0)
        queue.retry(f"job-{number}")
        queue.forget(f"job-{number}")
    assert [len(each) for each in (queue._timers, queue._backoffs, queue._waiting)] == [0, 0, 0]


async def test_a_closed_queue_gives_nothing_away_and_waits_for_what_is_under_way() -> None:
    queue = Queue[str]()
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
