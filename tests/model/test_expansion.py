"""References that the kubelet expands, and text that must not be taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfyard.model.expansion import escape, expand, references

EXPANSIONS = {
    "a known name is replaced": ("$(A)", "1"),
    "inside of other text": ("x$(A)y$(A)", "x1y1"),
    "an unknown name stays": ("$(NO)", "$(NO)"),
    "two dollars are one": ("$$(A)", "$(A)"),
    "a lone dollar stays": ("$A costs $5", "$A costs $5"),
    "an open bracket stays": ("$(A", "$(A"),
}


@pytest.mark.parametrize(("text", "expected"), EXPANSIONS.values(), ids=EXPANSIONS.keys())
def test_variables_are_expanded(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


@given(st.text(alphabet="$()Ax "))
def test_escaped_text_arrives_as_it_was_written(text: str) -> None:
    assert expand(escape(text), {"A": "1"}) == text
    assert not references(escape(text))


def test_references_are_the_names_that_the_kubelet_replaces() -> None:
    assert references("$(A) $$(B) $C $(D-1)") == {"A", "D-1"}
