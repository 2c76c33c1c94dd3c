"""Lines of a log that carries no times have times, in an index of bounded size."""

import os
from pathlib import Path

import pytest

from tfyard.node import log_times
from tfyard.node.log_times import RECORD, SECOND, TimeIndex, rfc3339

T = 1_700_000_000 * SECOND


def write(log: Path, data: bytes, time: int) -> None:
    with log.open("ab") as file:
        file.write(data)
    os.utime(log, ns=(time, time))


def test_a_line_has_the_time_of_the_growth_that_completed_it(tmp_path: Path) -> None:
    log, times = tmp_path / "log", TimeIndex(tmp_path / "log")
    assert times.notice() == 0
    write(log, b"one\ntw", T)
    assert times.notice() == 6
    write(log, b"o\nthree\n", T + SECOND)
    times.notice()
    for reader in (times, TimeIndex(log)):
        assert reader.notice() == 14
        assert [reader.covering(end) for end in (4, 8, 14)] == [(6, T), (14, T + SECOND), (14, T + SECOND)]
        assert [reader.since(T + after) for after in (0, 1, SECOND, SECOND + 1)] == [0, 6, 6, 14]


def test_growth_that_is_noticed_late_has_the_time_of_its_last_write(tmp_path: Path) -> None:
    write(tmp_path / "log", b"from a box that was killed\n", T)
    times = TimeIndex(tmp_path / "log")
    times.notice()
    assert times.covering(5) == (27, T)


def test_times_never_go_back_with_the_clock(tmp_path: Path) -> None:
    log, times = tmp_path / "log", TimeIndex(tmp_path / "log")
    for time in (T, T - SECOND):
        write(log, b"line\n", time)
        times.notice()
    assert times.covering(10) == (10, T)


def test_a_truncated_log_and_a_torn_record_are_survived(tmp_path: Path) -> None:
    log, times = tmp_path / "log", TimeIndex(tmp_path / "log")
    write(log, b"a long line\n", T)
    times.notice()
    with (tmp_path / ".log.times").open("ab") as index:
        index.write(b"torn")
    write(log, b"more\n", T + 1)
    times = TimeIndex(log)
    times.notice()
    assert times.covering(17) == (17, T + 1)
    log.write_bytes(b"")
    write(log, b"anew\n", T + 2)
    for reader in (times, TimeIndex(log)):
        reader.notice()
        assert reader.covering(5) == (5, T + 2)


def test_times_are_printed_as_kubelets_do() -> None:
    assert rfc3339(T + 7) == "2023-11-14T22:13:20.000000007Z"


def test_a_full_disk_does_not_hide_the_log(tmp_path: Path) -> None:
    (tmp_path / ".log.times").symlink_to("/dev/full")
    times = TimeIndex(tmp_path / "log")
    for turn in range(2):
        write(tmp_path / "log", b"line\n", T + turn)
        assert times.notice() == 5 * turn + 5
    assert times.covering(10) == (10, T + 1)


def test_the_index_of_a_folder_that_is_being_removed_is_not_made_again(tmp_path: Path) -> None:
    times = TimeIndex(tmp_path / "log")
    write(tmp_path / "log", b"line\n", T)
    times.notice()
    (tmp_path / ".log.times").unlink()
    write(tmp_path / "log", b"last line\n", T + 1)
    assert times.notice() == 15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_a_reader_waits_for_the_record_and_then_takes_the_time_of_the_last_write(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run, reader = TimeIndex(log), TimeIndex(log)
    run.begin()
    write(log, b"one\n", T)
    assert (reader.look(is_over=False), reader.is_kept, reader.began) == (0, True, run.began)
    run.notice()
    write(log, b"two\n", T + 1)
    assert reader.look(is_over=False) == 4
    write(log, b"three\n", T + 2)
    assert reader.look(is_over=False) == 8  # nobody has recorded it meanwhile
    assert [reader.look(is_over=True), reader.covering(8)[1], reader.covering(14)[1]] == [14, T + 1, T + 2]
    assert (tmp_path / ".log.times").stat().st_size == 2 * RECORD.size  # who reads does not write
    run.end()
    assert reader.load().ended == run.ended >= run.began
    assert reader.covering(14)[1] == T + 2


def test_a_log_without_an_index_has_the_time_of_its_last_write_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "log", b"one\ntwo\n", T)
    reader = TimeIndex(tmp_path / "log")
    assert (reader.look(is_over=True), reader.is_kept, reader.began) == (8, False, 0)
    assert (reader.since(T), reader.since(T + 1)) == (0, 8)


def test_an_index_that_is_too_long_loses_records_of_its_older_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_times, "MOST_RECORDS", 100)
    log, times, early = tmp_path / "log", TimeIndex(tmp_path / "log"), TimeIndex(tmp_path / "log")
    times.begin()
    for turn in range(1000):
        write(log, b"line\n", T + turn)
        times.notice()
        if turn % 90 == 0:
            early.look(is_over=False)
        assert times.index.stat().st_size <= 102 * RECORD.size
    for reader in (early, TimeIndex(log)):
        assert (reader.look(is_over=True), reader.began) == (5000, times.began)
        found = [reader.covering(5 * line + 5)[1] - T for line in range(1000)]
        assert all(line <= at for line, at in enumerate(found))  # never before it was there
        assert found == sorted(found)
        assert found[960:] == list(range(960, 1000))
