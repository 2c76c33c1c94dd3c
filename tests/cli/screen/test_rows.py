"""Lines that are longer than the terminal is wide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfyard.cli.screen.rows import hanging, wrapped

WORDS = st.text(st.sampled_from("ab .日 "), max_size=60)


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        pytest.param(
            "python is /a/b (tfyard's own)", ["python is /a/b", "(tfyard's own)"], id="between words"
        ),
        pytest.param("logs: " + "/long" * 5, ["logs: /long/long/long", "/long/long"], id="a path"),
        pytest.param("a" * 21, ["a" * 21], id="exactly a row"),
        pytest.param("a" * 21 + " b", ["a" * 21, "b"], id="a word that fills a row"),
        pytest.param("  File x.py, line seven", ["  File x.py, line", "seven"], id="indented"),
        pytest.param("日本 " * 6, ["日本 日本 日本 日本", "日本 日本 "], id="wide letters"),
        pytest.param("", [""], id="empty"),
    ],
)
def test_rows_end_between_words(line: str, rows: list[str]) -> None:
    assert wrapped(line, 21) == rows


def test_rows_below_the_first_are_indented_and_narrower() -> None:
    assert (
        hanging("one two three four\nfive six seven", 12)
        == "one two\n    three\n    four\n    five six\n    seven"
    )


@given(WORDS, st.integers(2, 12))
def test_nothing_but_spaces_is_lost_and_no_row_is_too_long(line: str, room: int) -> None:
    rows = wrapped(line, room)
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")
    assert all(sum(2 if letter == "日" else 1 for letter in row.rstrip(" ")) <= room for row in rows)
