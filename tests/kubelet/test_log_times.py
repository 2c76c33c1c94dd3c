"""Lines of a log that carries no times have times that never change, and a log without end takes bounded space."""

import os
from pathlib import Path

import pytest

from tfyard.kubelet import log_times
from tfyard.kubelet.log_times import PART, SECOND, LogTimes, first_data, rfc3339

T = 1_700_000_000 * SECOND


def write(log: Path, data: bytes, time: int) -> None:
    with log.open("ab") as file:
        file.write(data)
    os.utime(log, ns=(time, time))


def test_a_line_has_the_time_of_the_growth_that_completed_it(tmp_path: Path) -> None:
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    assert times.notice() == 0
    write(log, b"one\ntw", T)
    assert times.notice() == 6
    write(log, b"o\nthree\n", T + SECOND)
    times.notice()
    for reader in (times, LogTimes(log)):
        assert reader.notice() == 14
        assert [reader.covering(end) for end in (4, 8, 14)] == [(6, T), (14, T + SECOND), (14, T + SECOND)]
        assert [reader.since(T + after) for after in (0, 1, SECOND, SECOND + 1)] == [0, 6, 6, 14]


def test_growth_that_is_noticed_late_has_the_time_of_its_last_write(tmp_path: Path) -> None:
    write(tmp_path / "log", b"from a box that was killed\n", T)
    times = LogTimes(tmp_path / "log")
    times.notice()
    assert times.covering(5) == (27, T)


def test_times_never_go_back_with_the_clock(tmp_path: Path) -> None:
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    for time in (T, T - SECOND):
        write(log, b"line\n", time)
        times.notice()
    assert times.covering(10) == (10, T)


def test_two_readers_share_what_either_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    one, two = LogTimes(log), LogTimes(log)
    for turn, reader in enumerate((one, two, one, two)):
        write(log, b"line\n", T + turn)
        reader.notice()
    one.notice()
    for reader in (one, two):
        assert [reader.covering(end)[1] - T for end in (5, 10, 15, 20)] == [0, 1, 2, 3]
    assert (tmp_path / "log.times").stat().st_size == 4 * log_times.RECORD.size


def test_a_truncated_log_and_a_torn_record_are_survived(tmp_path: Path) -> None:
    log, times = tmp_path / "log", LogTimes(tmp_path / "log")
    write(log, b"a long line\n", T)
    times.notice()
    with (tmp_path / "log.times").open("ab") as index:
        index.write(b"torn")
    write(log, b"more\n", T + 1)
    times = LogTimes(log)
    times.notice()
    assert times.covering(17) == (17, T + 1)
    log.write_bytes(b"")
    write(log, b"anew\n", T + 2)
    for reader in (times, LogTimes(log)):
        reader.notice()
        assert reader.covering(5) == (5, T + 2)


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
    assert disk(tmp_path / "log.times") < 1000 * log_times.RECORD.size + 8192
    later = LogTimes(log)
    later.notice()
    assert later.covering(15_000) == (15_000, T + 2999)
    assert later.since(T + 2990) == 2990 * 5


def test_times_are_printed_as_kubelets_do() -> None:
    assert rfc3339(T + 7) == "2023-11-14T22:13:20.000000007Z"


def test_a_full_disk_does_not_hide_the_log(tmp_path: Path) -> None:
    (tmp_path / "log.times").symlink_to("/dev/full")
    times = LogTimes(tmp_path / "log")
    for turn in range(2):
        write(tmp_path / "log", b"line\n", T + turn)
        assert times.notice() == 5 * turn + 5
    assert times.covering(10) == (10, T + 1)


def test_the_index_of_a_folder_that_is_being_removed_is_not_made_again(tmp_path: Path) -> None:
    times = LogTimes(tmp_path / "log")
    write(tmp_path / "log", b"line\n", T)
    times.notice()
    (tmp_path / "log.times").unlink()
    write(tmp_path / "log", b"last line\n", T + 1)
    assert times.notice() == 15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]
