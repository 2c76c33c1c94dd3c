"""Plain YAML text -> value, by the rules of kubectl's own YAML loader.

A file must mean the same here and with `kubectl apply`, and that loader follows neither PyYAML nor YAML 1.2: `1e3`
is a number and `010` is eight, but `1:30` and `2020-01-01` are text.
"""

import math
import re

Scalar = str | int | float | bool | None

STANDARD = "tag:yaml.org,2002:"

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC_START = frozenset("+-.0123456789")
_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASES = {"0x": 16, "0b": 2, "0o": 8}

# The range of int64 and uint64: a larger number would silently lose digits in JSON.
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
# No 64-bit number is longer, and int() is slow or fails on thousands of digits.
_MOST_DIGITS = 128


class TooLarge(ValueError):
    """An integer that no Kubernetes field can hold."""


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises TooLarge for an integer beyond 64 bits."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    if _INT.match(digits):
        return _integer(digits)
    if _FLOAT.match(digits):
        return _float(text, digits)
    return text


def as_tagged(text: str, tag: str) -> Scalar:
    """The value of a tagged scalar such as `!!int "3"`. Raises ValueError if text and tag do not match."""
    kind = tag.removeprefix(STANDARD)
    if kind == "str" or tag == "!":
        return text
    value = resolve(text)
    if kind == "float" and type(value) is int:
        return float(value)
    if type(value).__name__ != {"null": "NoneType"}.get(kind, kind):
        raise ValueError(f'"{text[:80]}" does not fit its tag !!{kind}')
    return value


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise TooLarge
    sign = -1 if digits[0] == "-" else 1
    bare = digits.lstrip("+-")
    base = _BASES.get(bare[:2].lower())
    if base is None:
        base = 8 if bare[0] == "0" else 10
    value = sign * int(bare, base)
    if not _SMALLEST <= value <= _LARGEST:
        raise TooLarge
    return value


def _float(text: str, digits: str) -> Scalar:
    """A number whose exponent overflows stays text: `12e4567` is a commit, not infinity."""
    value = float(digits)
    return text if math.isinf(value) else value
