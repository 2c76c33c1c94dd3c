"""Following files: everything is counted, little is held."""

from pathlib import Path

from tfyard.node.logs import BEHIND, LONGEST_LINE, Follower, Line, Skipped, clean, tail


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = Follower("w", path)
    assert list(follower.read()) == []
    path.write_bytes(b"one\ntw")
    assert list(follower.read()) == [Line("w", "one")]
    with path.open("ab") as file:
        file.write(b"o\nlast")
    assert list(follower.read()) == [Line("w", "two")]
    assert list(follower.close()) == [Line("w", "last")]


def test_whoever_is_far_behind_jumps_and_says_over_how_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    total = 3 * BEHIND // 10
    path.write_bytes(b"123456789\n" * total)
    follower = Follower("w", path)
    told = [*follower.read(), *follower.close()]
    assert isinstance(told[0], Skipped)
    assert told[0].lines + sum(isinstance(line, Line) for line in told) == total


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (BEHIND - 1))
    follower = Follower("w", path)
    for _ in range(10):
        assert list(follower.read()) == []
    assert len(follower._partial) <= 4 * LONGEST_LINE
    (line,) = follower.close()
    assert isinstance(line, Line)
    assert line.text.endswith("(the line goes on)")


def test_of_a_progress_bar_the_last_state_is_kept_however_its_bytes_arrive(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = Follower("w", path)
    for piece in (b"\rold " + b"x" * (4 * LONGEST_LINE - 10), b"yyy", b"\rnew", b" state", b"\r\n"):
        with path.open("ab") as file:
            file.write(piece)
        found = list(follower.read())
    assert found == [Line("w", "new state")]


def test_what_would_tear_up_the_screen_is_taken_out_and_colours_stay() -> None:
    assert clean(b"\x1b[2J\x1b[31mred\x1b[0m\x07\x1b[5;3H") == "\x1b[31mred\x1b[0m"
    assert clean(b"\xff\xfe caf\xc3\xa9") == "\ufffd\ufffd café"
    assert clean(b"10%\r50%\r100%\r") == "100%"


def test_the_tail_is_as_short_as_the_kubelets(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {i}\n" for i in range(1000)))
    text = tail(path)
    assert text.endswith("line 999")
    assert len(text) <= 2048
    assert len(text.splitlines()) <= 80
    assert tail(tmp_path / "absent") == ""
