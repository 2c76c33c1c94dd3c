"""Reading on after a broken connection: no line twice, none lost silently."""

import pytest

from tfyard.logs.position import Gone, LogPosition


def line(second: int, nano: int, text: str = "x", zone: str = "Z") -> bytes:
    return f"2026-11-16T04:00:{second:02}.{nano:09}{zone} {text}".encode()


LOG = [line(1, 5), line(1, 6), line(2, 1), line(2, 1), line(2, 1), line(3, 0), line(3, 9)]


def resent(since: str, log: list[bytes]) -> list[bytes]:
    """As a kubelet answers: since a whole second."""
    return [each for each in log if each[:19].decode() >= since[:19]]


@pytest.mark.parametrize("seen", range(len(LOG) + 1))
@pytest.mark.parametrize("size", [1, 2, 7])
def test_reading_goes_on_after_each_line_whatever_the_size_of_the_answer(seen: int, size: int) -> None:
    position, got = LogPosition(), list[bytes]()
    position.reopen()
    got += position.take(LOG[:seen])
    again = resent(position.reopen(), LOG)
    for at in range(0, len(again), size):
        got += position.take(again[at : at + size])
    assert got == LOG
    assert not position.is_expecting


def test_times_that_are_out_of_order_at_the_turn_of_a_second_lose_nothing() -> None:
    log = [line(1, 1), line(2, 0), line(1, 999), line(2, 1)]
    position = LogPosition()
    position.take(log[:2])
    assert list(position.take(resent(position.reopen(), log))) == log[2:]


@pytest.mark.parametrize("seen", [1, 2, 3, 4])
def test_reading_that_began_with_the_last_lines_goes_on(seen: int) -> None:
    log = [line(1, nano, str(nano)) for nano in range(8)]
    position = LogPosition(is_cut=True)
    position.take(log[3 : 3 + seen])
    assert list(position.take(resent(position.reopen(), log))) == log[3 + seen :]


def test_the_zone_of_the_node_is_kept() -> None:
    position = LogPosition()
    position.take([line(1, 5, zone="-05:00")])
    assert position.reopen() == "2026-11-16T04:00:01-05:00"


def test_a_rotated_log_is_noticed_and_read_on_with() -> None:
    position = LogPosition()
    position.take(LOG[:4])
    position.reopen()
    with pytest.raises(Gone):
        position.take(LOG[5:])
    position.reopen(after_gap=True)
    assert position.take(LOG[5:]) == LOG[5:]


def test_what_remains_of_a_rotated_second_is_not_doubled() -> None:
    position = LogPosition()
    position.take(LOG[:5])
    position.reopen()
    with pytest.raises(Gone):
        position.take(LOG[4:])
    position.reopen(after_gap=True)
    assert position.take(LOG[4:]) == LOG[5:]
