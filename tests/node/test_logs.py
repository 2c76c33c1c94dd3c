"""Following files: everything is counted, little is held."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfyard.logs.terminal_text import LONGEST_LINE, SCREEN_LINE
from tfyard.node import logs
from tfyard.node.logs import (
    BEHIND,
    LogFileFollower,
    SkippedLines,
    UnfinishedLine,
    WrittenLines,
    tail,
)


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = LogFileFollower("w", path)
    assert list(follower.read()) == []
    path.write_bytes(b"one\ntw")
    assert list(follower.read()) == [WrittenLines("w", "one"), UnfinishedLine("w", "tw", is_rewritten=False)]
    with path.open("ab") as file:
        file.write(b"o\nthree\nlast")
    assert list(follower.read()) == [
        WrittenLines("w", "two\nthree"),
        UnfinishedLine("w", "last", is_rewritten=False),
    ]
    assert list(follower.read()) == []
    assert list(follower.close()) == [WrittenLines("w", "last")]


def test_a_line_that_has_ended_is_not_shown_as_begun_once_more(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    follower = LogFileFollower("w", path)
    follower.begun = b"\r 1/13 loss: 9"
    assert list(follower.read()) == [UnfinishedLine("w", " 1/13 loss: 9", is_rewritten=True)]
    path.write_bytes(b"\r 1/13 loss: 9\r13/13 loss: 8\n")
    assert list(follower.read()) == [WrittenLines("w", "13/13 loss: 8")]


def test_the_line_that_has_begun_after_one_that_ended_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = LogFileFollower("w", path)
    path.write_bytes(b"13/13 loss: 8\n")
    follower.begun = b"\r 1/5 evaluating"
    assert list(follower.read()) == [
        WrittenLines("w", "13/13 loss: 8"),
        UnfinishedLine("w", " 1/5 evaluating", is_rewritten=True),
    ]


def count(found: list[object]) -> int:
    return sum(item.text.count("\n") + 1 for item in found if isinstance(item, WrittenLines))


def test_a_screen_that_is_far_behind_jumps_and_says_over_how_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    total = 3 * BEHIND // 10
    path.write_bytes(b"123456789\n" * total)
    follower = LogFileFollower("w", path, for_screen=True)
    told: list[object] = [*follower.read(), *follower.close()]
    assert isinstance(told[0], SkippedLines)
    assert told[0].lines + count(told) == total


def test_a_follower_that_is_not_for_a_screen_gets_every_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    total = 3 * BEHIND // 10
    path.write_bytes(b"123456789\n" * total)
    follower = LogFileFollower("w", path)
    told: list[object] = list(follower.read())
    assert follower.is_behind
    told += follower.close()
    assert count(told) == total
    flood = [item.is_flood for item in told if isinstance(item, WrittenLines)]
    assert (flood[0], flood[-1]) == (True, False)


def test_a_screen_waits_for_the_end_of_a_flood_and_reads_a_burst_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = LogFileFollower("w", path, for_screen=True)
    path.write_bytes(b"123456789\n" * (BEHIND // 20))
    assert follower.is_behind
    path.write_bytes(b"123456789\n" * (BEHIND // 5))
    assert not follower.is_behind
    assert [type(item) for item in follower.read()] == [SkippedLines, WrittenLines]


def test_a_jump_over_no_line_is_not_reported(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (3 * BEHIND))
    follower = LogFileFollower("w", path, for_screen=True)
    assert not [item for item in follower.close() if isinstance(item, SkippedLines)]


@pytest.mark.parametrize(("for_screen", "longest"), [(True, SCREEN_LINE), (False, LONGEST_LINE)])
def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path, for_screen: bool, longest: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (5 * LONGEST_LINE))
    follower = LogFileFollower("w", path, for_screen=for_screen)
    while follower.is_behind:
        assert not [item for item in follower.read() if isinstance(item, WrittenLines)]
    assert len(follower._partial) <= 4 * longest
    (line,) = follower.close()
    assert isinstance(line, WrittenLines)
    assert line.text.endswith("(the line is longer)")
    assert len(line.text) < longest + 50


def test_every_state_of_a_progress_bar_is_shown_and_the_last_is_the_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = LogFileFollower("w", path, for_screen=True)
    states = []
    for piece in (b"\rold " + b"x" * (4 * SCREEN_LINE - 10), b"yyy", b"\rnew", b" state", b"\r\n"):
        with path.open("ab") as file:
            file.write(piece)
        found = list(follower.read())
        states += [item.text[:9] for item in found if isinstance(item, UnfinishedLine) and item.is_rewritten]
    assert states == ["old xxxxx", "old xxxxx", "new", "new state"]
    assert found == [WrittenLines("w", "new state")]


def test_the_tail_is_as_short_as_the_kubelets(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {i}\n" for i in range(1000)))
    text = tail(path)
    assert text.endswith("line 999")
    assert len(text) <= 2048
    assert len(text.splitlines()) <= 80
    assert tail(tmp_path / "absent") == ""


def test_the_tail_has_the_final_state_of_a_progress_bar_and_no_colours(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\r1/2\r\x1b[1m2/2\x1b[0m\nTraceback\n")
    assert tail(tmp_path / "log") == "2/2\nTraceback"


@given(st.lists(st.sampled_from([b"a", b"\n", b"bcdef"])), st.integers(0, 8), st.sampled_from([1, 3, 7]))
def test_tail_is_the_last_lines_wherever_chunks_end(parts: list[bytes], count: int, chunk: int) -> None:
    data = b"".join(parts)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logs, "SEARCHED", chunk)
            start = logs.start_of_last(file.fileno(), (0, len(data)), count)
            starts = [logs.line_start(file.fileno(), 0, at) for at in range(len(data))]
    lines = data.splitlines(keepends=True)
    assert data[start:] == b"".join(lines[len(lines) - min(count, len(lines)) :])
    assert starts == [data.rfind(b"\n", 0, at) + 1 for at in range(len(data))]
