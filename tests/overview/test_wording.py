"""Durations, sizes and ends, as people read them."""

import pytest

from tfyard.model.run_events import Ended
from tfyard.overview import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5.2, "0s"), (0.9, "0s"), (59, "59s"), (60, "1m00s"), (3599, "59m59s"), (7325, "2h02m")],
)
def test_durations(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "2 KB"), (2e6, "2 MB"), (1.25e9, "1.2 GB")]
)
def test_sizes(count: float, text: str) -> None:
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (Ended("worker-0", 0, "Completed"), "ended with code 0"),
        (Ended("worker-0", 137, "OOMKilled"), "ended with code 137 (OOMKilled)"),
        (Ended("worker-0", 143, "Error", stopped="the job has ended"), "stopped: the job has ended"),
    ],
)
def test_the_end_of_a_task(ended: Ended, text: str) -> None:
    assert wording.ending(ended) == text


def test_lines_that_are_not_shown_are_counted() -> None:
    assert wording.skipped(1) == "… 1 line not shown; see its log"
    assert wording.folded(1_234) == "… 1,234 lines of TensorFlow's runtime; --verbose shows them"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (4.14e-06, "under 0.001"), (0.0123456, "0.0123"), (1.5, "1.5"), (12345.6, "12,346")],
)
def test_hours_have_no_exponent(value: float, text: str) -> None:
    assert wording.hours(value) == text
