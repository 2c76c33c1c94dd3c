"""Problems of quantities (`500m`, `8Gi`) that users write, with the probable correction."""

import re
from typing import Literal

from tfyard.model.problem import FieldPath, Problem
from tfyard.model.quantity import amount, is_quantity

MALFORMED, NEGATIVE = "must be a quantity", "must not be negative"
_WRONG_UNIT, _NO_UNIT = "M was probably meant", "a unit is probably missing"
LEAST = 1 << 20
"""Number of bytes below which no program runs: a smaller amount has the wrong unit, or none."""
_MOST_GIBIBYTES = 128
_EXAMPLE = "for example 8Gi or 500M"
_LONGEST_GUESS = 40
_BYTES = frozenset({"memory", "storage", "ephemeral-storage", "size", "sizeLimit"})
_WITH_UNIT = re.compile(r"[-+]?([0-9]+\.?[0-9]*)([a-z]+)")
_OF_BYTES, _OF_CPUS = frozenset({"b", "byte", "bytes"}), frozenset({"core", "cores", "cpu", "cpus"})


def problems(value: object, path: FieldPath) -> list[Problem]:
    """Problems of a quantity. The last step of its path says what it measures."""
    text = str(value).strip()
    if not is_quantity(value):
        return [Problem(path, MALFORMED, _fix(text, path), value)]
    if text.startswith("-") and (amount(text) or 0) < 0:
        return [Problem(path, NEGATIVE, text[1:], value)]
    is_large = text[-1] in "iMGTPE" and not text.endswith("Ki")  # known without decimals, which import slowly
    if _counts_bytes(path) and not is_large and 0 < (amount(text) or 0) < LEAST:
        return [_too_small(text, path, value)]
    return []


def is_about_amount(problem: Problem) -> bool:
    """Whether only the amount is wrong and the type of the field is right, so that reading can continue."""
    return problem.message in (MALFORMED, NEGATIVE) or problem.message.endswith((_WRONG_UNIT, _NO_UNIT))


def _too_small(text: str, path: FieldPath, value: object) -> Problem:
    """A memory limit this small is an error, because the container would be killed as soon as it starts."""
    severity: Literal["error", "warning"] = "error" if path[-2:] == ("limits", "memory") else "warning"
    if text[-1] in "num":
        share = {"m": "thousandths", "u": "millionths", "n": "billionths"}[text[-1]]
        words, fix = f"{text} is {text[:-1]} {share} of a byte; {_WRONG_UNIT}", _either(text[:-1], "M")
    else:
        number = amount(text) or 0
        words = f"{text} is {float(number):,g} bytes; {_NO_UNIT}"
        fix = f"{text}{'Gi' if number <= _MOST_GIBIBYTES else 'Mi'}" if text.isdigit() else _EXAMPLE
    return Problem(path, words, fix, value, severity=severity)


def _counts_bytes(path: FieldPath) -> bool:
    return path[-1] in _BYTES or str(path[-1]).startswith("hugepages-")


def _fix(text: str, path: FieldPath) -> str:
    """The probable quantity in Kubernetes' notation, or an example."""
    bare = re.sub(r"[\s_]", "", text).replace(",", ".")
    match = _WITH_UNIT.fullmatch(bare.lower())
    if len(text) <= _LONGEST_GUESS:
        if is_quantity(bare) and not problems(bare, path):
            return bare
        if match and match[2] in (_OF_BYTES if _counts_bytes(path) else _OF_CPUS):
            return match[1]
        if match and match[2][0] in "kmgtpe" and match[2][1:] in ("", "b", "i", "ib"):
            letter = match[2][0].upper()
            return f"{match[1]}{letter}i" if "i" in match[2] else _either(match[1], letter)
    if path[-1] == "cpu":
        return "for example 2, 0.5 or 500m"
    return _EXAMPLE if _counts_bytes(path) else "for example 2, 500m or 8Gi"


def _either(number: str, letter: str) -> str:
    """The number with a decimal and a binary unit, because GB may mean both. A thousand is a lower-case k."""
    return f"{number}{'k' if letter == 'K' else letter} or {number}{letter}i"
