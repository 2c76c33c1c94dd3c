"""The times of lines never change, and a log without end takes bounded space."""

import os
from pathlib import Path

import pytest

from tests.node.test_log_times import T, write
from tfyard.node import log_times
from tfyard.node.log_limits import PART, LogTimes
from tfyard.node.log_times import first_data


def test_two_readers_share_what_either_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    one, two = LogTimes(log), LogTimes(log)
    for turn, reader in enumerate((one, two, one, two)):
        write(log, b"line\n", T + turn)
        reader.notice()
    one.notice()
    for reader in (one, two):
        assert [reader.covering(end)[1] - T for end in (5, 10, 15, 20)] == [0, 1, 2, 3]
    assert (tmp_path / ".log.times").stat().st_size == 4 * log_times.RECORD.size


def disk(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_a_log_without_end_keeps_its_newest_fifty_mebibytes(tmp_path: Path) -> None:
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    part = b"x" * 1023 + b"\n"
    for turn in range(7):
        write(log, part * (PART // 1024), T + turn)
        times.notice()
    assert log.stat().st_size == 7 * PART
    assert 4 * PART <= disk(log) <= 5 * PART
    descriptor = os.open(log, os.O_RDONLY)
    assert first_data(descriptor, 0) == 3 * PART
    os.close(descriptor)
    later = LogTimes(log)
    later.notice()
    assert later.covering(3 * PART + 1024) == times.covering(3 * PART + 1024) == (4 * PART, T + 3)


def test_one_burst_is_cut_as_well(tmp_path: Path) -> None:
    write(tmp_path / "log", b"x" * (6 * PART), T)
    LogTimes(tmp_path / "log").notice()
    assert disk(tmp_path / "log") <= 5 * PART


def test_the_index_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_times, "MOST_RECORDS", 1000)
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    for turn in range(3000):
        write(log, b"line\n", T + turn)
        times.notice()
    assert disk(tmp_path / ".log.times") < 1000 * log_times.RECORD.size + 8192
    later = LogTimes(log)
    later.notice()
    assert later.covering(15_000) == (15_000, T + 2999)
    assert later.since(T + 2990) == 2990 * 5
