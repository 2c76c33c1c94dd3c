"""What `kubectl logs` gets of a log, for each of its options."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.node.test_log_times import T, write
from tfyard.kubelet import log_stream
from tfyard.kubelet.log_stream import LogOptions, stream
from tfyard.kubelet.runtime import LogSource
from tfyard.node.log_limits import PART, LogTimes
from tfyard.node.log_times import SECOND, rfc3339


async def collect(log: Path, options: LogOptions, *, is_over: bool = True) -> bytes:
    return b"".join([data async for data in stream(LogSource(log, lambda: is_over), options)])


def read(log: Path, is_over: bool = True, **options: object) -> bytes:
    return asyncio.run(collect(log, LogOptions(**options), is_over=is_over))  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two lines, a pause of ten seconds, and a line and a half."""
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    write(log, b"one\ntwo\n", T)
    times.notice()
    write(log, b"three\nfou", T + 10 * SECOND)
    times.notice()
    return log


def test_an_unfinished_line_is_shown_and_counts_as_a_line(log: Path) -> None:
    assert read(log, is_over=False) == b"one\ntwo\nthree\nfou"
    assert read(log, tail_lines=2) == b"three\nfou"
    assert read(log, tail_lines=0) == b""
    assert read(log, tail_lines=99) == b"one\ntwo\nthree\nfou"


def test_with_times_an_unfinished_line_waits_for_its_end(log: Path) -> None:
    """Its time would be another one later, and clients go by times to resume."""
    early, late = rfc3339(T).encode(), rfc3339(T + 10 * SECOND).encode()
    whole = early + b" one\n" + early + b" two\n" + late + b" three\n"
    assert read(log, is_over=False, timestamps=True) == whole
    assert read(log, is_over=True, timestamps=True) == whole + late + b" fou"


def test_since_takes_whole_lines_and_goes_with_tail(log: Path) -> None:
    since = LogOptions(since_time=datetime.fromtimestamp(T // SECOND + 1, UTC))
    assert asyncio.run(collect(log, since)) == b"three\nfou"
    assert read(log, since_seconds=0) == b"fou"  # its end is still to come
    assert read(log, since_seconds=10**9, tail_lines=1) == b"fou"


def test_the_limit_counts_what_is_sent(log: Path) -> None:
    assert read(log, limit_bytes=5) == b"one\nt"
    assert read(log, limit_bytes=5, timestamps=True) == rfc3339(T).encode()[:5]


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "log") == b""


async def test_a_log_is_followed_to_its_very_end(tmp_path: Path) -> None:
    log, over = tmp_path / "log", False
    following = asyncio.create_task(_follow(LogSource(log, lambda: over)))
    for turn in range(3):
        await asyncio.sleep(0.02)
        write(log, b"line %d\npart of " % turn, T + turn)
    over = True
    assert await following == b"line 0\npart of line 1\npart of line 2\npart of "


async def _follow(source: LogSource) -> bytes:
    return b"".join([data async for data in stream(source, LogOptions(follow=True))])


@pytest.mark.parametrize("timestamps", [False, True])
async def test_a_slow_reader_goes_on_behind_what_was_freed(tmp_path: Path, timestamps: bool) -> None:
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    lines = b"".join(b"%07d\n" % number for number in range(PART // 8))
    write(log, lines, T)
    source = LogSource(log, lambda: True)
    reading = stream(source, LogOptions(follow=True, timestamps=timestamps))
    assert b"0000001\n" in await anext(reading)
    for turn in range(1, 6):
        write(log, lines, T + turn)
        times.notice()
    rest = b"".join([data async for data in reading])
    assert b"\0" not in rest
    assert rest.splitlines()[0].endswith(b"0000001")
    assert rest.count(b"\n") == 4 * (PART // 8) - 1


def test_a_line_without_end_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "LONGEST_LINE", 100)
    monkeypatch.setattr(log_stream, "CHUNK", 64)
    log = tmp_path / "log"
    write(log, b"x" * 1000 + b"\nnext\n", T)
    prefix = rfc3339(T).encode() + b" "
    assert read(log, timestamps=True) == prefix + b"x" * 1000 + b"\n" + prefix + b"next\n"
