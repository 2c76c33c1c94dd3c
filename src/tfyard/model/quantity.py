"""Quantities as Kubernetes writes them: `2`, `0.5`, `500m`, `8Gi`, `1e3`. Only this module knows their grammar."""

import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

# Suffix -> base and power. Upper-case K is not a suffix; E is one unless digits follow: then it is an exponent.
_SUFFIXES = {"": (10, 0)}
_SUFFIXES |= {
    suffix: (10, power) for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_SUFFIXES |= {f"{letter}i": (1024, power) for power, letter in enumerate("KMGTPE", 1)}

_UNSIGNED = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,9})?"
PATTERN = rf"^\+?{_UNSIGNED}$"
"""Quantities that are not negative, as a pattern for the JSON schemas that editors use."""
_QUANTITY = re.compile(rf"[-+]?{_UNSIGNED}")
_LARGEST = 2**63 - 1


def is_quantity(value: object) -> bool:
    """Accepts text and numbers. Like the API server, it ignores blanks around the text."""
    return not isinstance(value, bool) and _QUANTITY.fullmatch(str(value).strip()) is not None


def amount(value: object) -> "Decimal | None":
    """The number, or None if the value is not a quantity."""
    text = str(value).strip()
    match = _QUANTITY.fullmatch(text)
    if match is None or isinstance(value, bool):
        return None
    suffix = match[3] if match[3] in _SUFFIXES else ""  # else it is an exponent, which Decimal reads
    base, power = _SUFFIXES[suffix]
    return _clamped(_clamped(Decimal(text.removesuffix(suffix))) * Decimal(base) ** power)


def _clamped(number: "Decimal") -> "Decimal":
    """The number, limited to 64 bits as in Kubernetes: all digits of 1e999999999 would fill the memory."""
    return max(min(number, type(number)(_LARGEST)), -type(number)(_LARGEST))
