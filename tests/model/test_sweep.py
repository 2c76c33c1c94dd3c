"""Values of parameters, as they are shown."""

import pytest

from tfyard.model.sweep import Value, short_text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0123456789, "0.0123457"),
        (True, "true"),
        ("a\n b", "a b"),
        ("", '""'),
        ("x" * 41, "x" * 40 + "…"),
    ],
)
def test_a_value_is_shown_short_and_in_one_line(value: Value, shown: str) -> None:
    assert short_text(value) == shown
