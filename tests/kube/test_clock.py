"""The server's time, as far as its answers prove it."""

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime

import pytest
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


def test_a_machine_that_is_ahead_is_put_back_as_soon_as_three_answers_agree() -> None:
    behind = answered(ServerClock(), NOON, NOON + seconds(3600), NOON + seconds(3600.1))
    assert is_corrected_by(behind, -3599)


def test_a_machine_that_is_behind_follows_a_minute_per_minute_from_the_start() -> None:
    """The first answers may all come from the one apiserver that is ahead: nothing must expire early."""
    clock = answered(ServerClock(), NOON, NOON - seconds(100.1), NOON - seconds(100))
    assert is_corrected_by(clock, 0)
    for later, corrected in ((32, 30), (62, 60), (122, 100), (182, 100)):
        answered_once(
            clock, NOON + seconds(later), NOON + seconds(later - 100.1), NOON + seconds(later - 100)
        )
        assert is_corrected_by(clock, corrected)


def test_a_clock_of_this_machine_that_is_set_does_not_move_that_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, before = ServerClock(), datetime.now(UTC)

    class SetBack(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "SetBack":
            return cls.fromtimestamp(before.timestamp() - 3600, tz)

    monkeypatch.setattr("tfyard.kube.transport.datetime", SetBack)
    for later in map(seconds, range(5)):
        answered_once(clock, before + later, clock.local(), clock.local() + later)
    assert abs((clock.now() - before).total_seconds()) < 5


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
    clock = answered(ServerClock(), NOON, NOON, NOON)
    for date in ("yesterday", "", "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -1200"):
        clock.read(date, NOON + seconds(2), NOON + seconds(2))
    for date in ("Mon, 01 Jan 0001 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"):
        clock.read(date, NOON + seconds(2), NOON + seconds(2))
    assert is_corrected_by(clock, 0)


async def test_a_client_knows_the_time_of_its_server() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        behind = datetime.now(UTC) - timedelta(hours=1)
        return web.json_response({}, headers={"Date": format_datetime(behind, usegmt=True)})

    async with answering(answer) as cluster, Client(Access(cluster)) as client:
        for _ in range(3):
            await client.send(requests.get("/version"))
            await asyncio.sleep(1.1)
        behind = datetime.now(UTC) - client.now()
        assert abs((behind - timedelta(hours=1)).total_seconds()) < 30
