import math
from typing import Any

import pytest

from tests.formats.reading import only


def value(text: str) -> Any:
    return only(f"v: {text}\n").data["v"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, None) for text in ("", "~", "null", "NULL")],
        *[(text, True) for text in ("true", "True", "yes", "on", "ON", "y")],
        *[(text, False) for text in ("false", "no", "off", "N")],
        *[(text, 8) for text in ("8", "+8", "010", "0o10", "0x8", "0b1000", "0_1_0")],
        ("-12_000", -12000),
        ("18446744073709551615", 2**64 - 1),
        ("1e3", 1000.0),
        ("08", 8.0),
        (".5", 0.5),
        ("-1.", -1.0),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        *[
            (text, text)
            for text in ("1:30", "2020-01-01", "12e4567", "1.2.3", "0x", "tRue", "-x", "8Gi", "<<")
        ],
        ("'on'", "on"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ('!!int "3"', 3),
        ("!!float 3", 3.0),
        ("!!bool on", True),
        ("!!null ~", None),
        ("!!map {}", {}),
        ("!!seq []", []),
    ],
)
def test_scalars_mean_what_kubectl_takes_them_for(text: str, expected: Any) -> None:
    resolved = value(text)
    assert (resolved, type(resolved)) == (expected, type(expected))


def test_not_a_number_is_a_number() -> None:
    assert math.isnan(value(".nan"))
