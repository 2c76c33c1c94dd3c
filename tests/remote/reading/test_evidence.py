"""What `why` reads of the last lines of a log."""

from datetime import UTC, datetime

import pytest

from tfyard.remote.reading.evidence import tail

AT = datetime(2026, 11, 16, 4, 0, 1, 123456, tzinfo=UTC)
STAMP = b"2026-11-16T04:00:01.123456789Z "


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"ValueError: the file a\x0cb is empty", "ValueError: the file ab is empty"),
        ("KeyError: 'a\u2028b c'".encode(), "KeyError: 'a\u2028b c'"),
        (b"step 1\rstep 2 loss: 0.5\r", "step 2 loss: 0.5"),
        (b"\x1b[31mOOM when allocating\x1b[0m", "OOM when allocating"),
    ],
)
def test_a_line_ends_at_its_line_break_and_is_read_as_a_terminal_shows_it(line: bytes, text: str) -> None:
    log = tail(STAMP + b"before\n" + STAMP + line + b"\n")
    assert (log.text, log.at) == (f"before\n{text}", AT)


def test_times_of_every_zone_are_read_and_what_has_none_is_kept_whole() -> None:
    log = tail(b"2026-11-16T06:00:01.123456789+02:00 trained\nunable to retrieve container logs\n")
    assert (log.text, log.at) == ("trained\nunable to retrieve container logs", AT)
    assert tail(b"") == tail(b"\n")
