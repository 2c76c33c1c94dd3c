"""Sets of indexes in the form of Indexed Jobs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfyard.planner import indexes

WRITTEN = {
    "nobody is nothing": (set(), ""),
    "one is itself": ({3}, "3"),
    "two in a row are a span": ({3, 4}, "3-4"),
    "spans and single ones stand in order": ({7, 0, 1, 2, 9}, "0-2,7,9"),
    "ten thousand in a row are short": (set(range(10_000)), "0-9999"),
}


@pytest.mark.parametrize(("found", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_indexes_are_written_short_and_read_back(found: set[int], text: str) -> None:
    assert indexes.compress(found) == text
    assert indexes.expand(text, 10_000) == found


@settings(max_examples=100, derandomize=True)
@given(st.sets(st.integers(0, 300)))
def test_any_set_is_read_back_as_it_was_written(found: set[int]) -> None:
    assert indexes.expand(indexes.compress(found), 301) == found


def test_a_span_beyond_the_replicas_costs_nothing_to_read() -> None:
    assert indexes.expand("0-1,3-999999999999", 5) == {0, 1, 3, 4}
