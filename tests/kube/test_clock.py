"""The server's time, as far as its answers prove it."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from aiohttp import web

from tests.kube.answers import answering
from tfyard.kube import Access, Client, requests
from tfyard.kube.transport import ServerClock

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def is_corrected_by(clock: ServerClock, expected: float) -> bool:
    """Whether the correction is right to a hundredth of a second, however long this process pauses."""
    before, now, after = datetime.now(UTC), clock.now(), datetime.now(UTC)
    return before - seconds(0.01) <= now - seconds(expected) <= after + seconds(0.01)


def answered(clock: ServerClock, at: datetime, sent: datetime, received: datetime) -> ServerClock:
    """Corrects the clock by three answers in a row, a second apart, that prove the same."""
    for later in map(seconds, range(3)):
        answered_once(clock, at + later, sent + later, received + later)
    return clock


def answered_once(clock: ServerClock, at: datetime, sent: datetime, received: datetime) -> ServerClock:
    clock.read(format_datetime(at, usegmt=True), sent, received)
    return clock


def test_clocks_that_may_agree_are_left_alone() -> None:
    assert is_corrected_by(answered(ServerClock(), NOON, NOON + seconds(0.8), NOON + seconds(0.9)), 0)


def test_a_clock_that_is_wrong_is_corrected_in_both_directions() -> None:
    behind = answered(ServerClock(), NOON, NOON + seconds(3600), NOON + seconds(3600.1))
    assert is_corrected_by(behind, -3599)
    ahead = answered(ServerClock(), NOON, NOON - seconds(100.1), NOON - seconds(100))
    assert is_corrected_by(ahead, 100)


def test_one_date_that_is_an_hour_ahead_changes_nothing() -> None:
    clock = answered_once(ServerClock(), NOON + seconds(3600), NOON, NOON)
    assert is_corrected_by(clock, 0)
    assert is_corrected_by(answered(clock, NOON + seconds(1), NOON + seconds(1), NOON + seconds(1)), 0)
    later = NOON + seconds(63)
    assert is_corrected_by(answered_once(clock, later + seconds(3600), later, later), 60)


def test_a_clock_follows_at_most_a_minute_per_minute() -> None:
    clock, moved = answered(ServerClock(), NOON, NOON, NOON), list[timedelta]()
    for minute in range(1, 4):
        now = NOON + seconds(2 + 60 * minute)
        moved.append(answered_once(clock, now + seconds(3600), now, now).now() - datetime.now(UTC))
    assert [round(each.total_seconds()) for each in moved] == [60, 120, 180]


def test_servers_that_disagree_leave_the_clock_alone() -> None:
    clock = ServerClock()
    for second in range(20):
        now = NOON + seconds(second)
        answered_once(clock, now + seconds(3600 * (second % 2)), now, now)
    assert is_corrected_by(clock, 0)


def test_an_answer_that_was_read_late_proves_nothing() -> None:
    """As by a process that was stopped in between."""
    assert is_corrected_by(answered(ServerClock(), NOON, NOON, NOON + seconds(500)), 0)


def test_a_date_that_cannot_be_read_is_ignored() -> None:
    clock = ServerClock()
    clock.read("yesterday", NOON, NOON)
    assert is_corrected_by(clock, 0)


async def test_a_client_knows_the_time_of_its_server() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        ahead = datetime.now(UTC) + timedelta(hours=1)
        return web.json_response({}, headers={"Date": format_datetime(ahead, usegmt=True)})

    async with answering(answer) as cluster, Client(Access(cluster)) as client:
        for _ in range(3):
            await client.send(requests.get("/version"))
            await asyncio.sleep(1.1)
        ahead = client.now() - datetime.now(UTC)
        assert abs((ahead - timedelta(hours=1)).total_seconds()) < 30
