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


def correction(clock: ServerClock) -> float:
    return round((clock.now() - datetime.now(UTC)).total_seconds(), 2)


def answered(clock: ServerClock, at: datetime, sent: datetime, received: datetime) -> float:
    clock.read(format_datetime(at, usegmt=True), sent, received)
    return correction(clock)


def test_clocks_that_may_agree_are_left_alone() -> None:
    assert answered(ServerClock(), NOON, NOON + seconds(0.8), NOON + seconds(0.9)) == 0.0


def test_a_clock_that_is_wrong_is_corrected_in_both_directions_and_again() -> None:
    clock = ServerClock()
    assert answered(clock, NOON, NOON + seconds(3600), NOON + seconds(3600.1)) == -3599.0
    later = NOON + seconds(60)
    assert answered(clock, later, later - seconds(100.1), later - seconds(100)) == 100.0


def test_an_answer_that_was_read_late_proves_nothing() -> None:
    """As by a process that was stopped in between."""
    assert answered(ServerClock(), NOON, NOON, NOON + seconds(500)) == 0.0


def test_a_date_that_cannot_be_read_is_ignored() -> None:
    clock = ServerClock()
    clock.read("yesterday", NOON, NOON)
    assert correction(clock) == 0.0


async def test_a_client_knows_the_time_of_its_server() -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({}, headers={"Date": format_datetime(ahead, usegmt=True)})

    async with answering(answer) as cluster, Client(Access(cluster)) as client:
        await client.send(requests.get("/version"))
        assert abs((client.now() - ahead).total_seconds()) < 5
