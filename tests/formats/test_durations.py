import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfyard.formats import durations
from tfyard.formats.declarations.reading import Notes
from tfyard.model.durations import write_duration


def read(value: str | int) -> tuple[int | None, list[str]]:
    notes = Notes()
    return durations.read(value, ("deadline",), notes), [problem.message for problem in notes.problems]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90), ("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800),
        ("1H", 3600), (" 5m ", 300), ("1w2d3h4m5s", 788_645), (0, 0), ("0s", 0), ("0000000000001h", 3600),
        (2**31 - 1, 2**31 - 1),
    ],
)  # fmt: skip
def test_times_are_read_as_people_write_them(text: str | int, seconds: int) -> None:
    assert read(text) == (seconds, [])


@pytest.mark.parametrize("text", ["", "s", "soon", "1.5h", "-5m", "5m1h", "1h 30m", "5 m", "1y"])
def test_text_that_is_not_a_duration_is_a_problem(text: str) -> None:
    assert read(text) == (None, ["must be a duration"])


@pytest.mark.parametrize("text", ["25000d", "9" * 5000, "9" * 5000 + "w"])
def test_durations_that_are_too_long_are_a_problem(text: str) -> None:
    assert read(text) == (None, ["must be at most 68 years"])


@settings(max_examples=50, derandomize=True)
@given(st.integers(0, durations.LONGEST))
def test_what_is_written_is_read_back(seconds: int) -> None:
    assert read(write_duration(seconds)) == (seconds, [])


def test_a_duration_is_written_in_its_shortest_form() -> None:
    assert [write_duration(n) for n in (0, 90, 3600, 5400, 86_400)] == ["0s", "1m30s", "1h", "1h30m", "1d"]
