"""The server's time, as far as its answers prove it."""

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
    """To a hundredth of a second, and however long this process is held up between two looks at a clock."""
    before, now, after = datetime.now(UTC), clock.now(), datetime.now(UTC)
    return before - seconds(0.01) <= now - seconds(expected) <= after + seconds(0.01)


def answered(clock: ServerClock, at: datetime, sent: datetime, received: datetime) -> ServerClock:
    clock.read(format_datetime(at, usegmt=True), sent, received)
    return clock


def test_clocks_that_may_agree_are_left_alone() -> None:
    assert is_corrected_by(answered(ServerClock(), NOON, NOON + seconds(0.8), NOON + seconds(0.9)), 0)


def test_a_clock_that_is_wrong_is_corrected_in_both_directions_and_again() -> None:
    clock = ServerClock()
    assert is_corrected_by(answered(clock, NOON, NOON + seconds(3600), NOON + seconds(3600.1)), -3599)
    later = NOON + seconds(60)
    assert is_corrected_by(answered(clock, later, later - seconds(100.1), later - seconds(100)), 100)


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
        await client.send(requests.get("/version"))
        ahead = client.now() - datetime.now(UTC)
        assert abs((ahead - timedelta(hours=1)).total_seconds()) < 30
