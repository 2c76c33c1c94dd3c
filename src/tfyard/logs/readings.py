"""Metrics read from the log lines of programs, so that programs need not call an API to report their loss.

A line is read if it says where the training is (step, epoch, iteration) and names a metric, if it consists of
metrics only, or if it is a final result. Progress bars of Keras and tqdm and matches of the user's own regex are
read, too.
"""

import math
import re
from collections.abc import Iterator

from msgspec import Struct

from tfyard.logs.metric_text import METRICS, NUMBER, cleaned, counts, mentions_metric, metric_at, metrics
from tfyard.logs.terminal_text import without_colours

# Compiled on first use: many runs need none of them.
_EPOCH = r"\s*Epoch (\d+)/(\d+)"
_KERAS = rf"\s*(\d+)/(?:(\d+)|Unknown)\s.*?\b\w+: (?:{NUMBER})"
_TQDM = r"(?:\bEpoch (\d+)(?:/(\d+))?.*)?\| *(\d+)/(\d+) \[[\d:]+<(.*)"
_FINAL = r"(?i)\b(?:final|held-out|test)\b"

LONGEST = 2_000
"""Maximum length of a line that is read: longer ones are data, not a report."""
SAMPLE, MOST_LINES = 20, 1_000
"""Part of each block that is read during a flood: its last twentieth; of any block, at most 1000 reports."""
_WORDS = (*METRICS, "step", "epoch", "eta:", "%|")
"""Every line that is understood has one of these words."""
COUNTS = ("step", "total", "epoch", "epochs")
"""Fields of a reading besides its metrics, and reserved names of groups in the user's regex."""


class Reading(Struct, frozen=True, kw_only=True):
    """The metrics of one line."""

    values: dict[str, float] = {}
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    epochs: int | None = None


def read_lines(
    text: str, pattern: re.Pattern[str] | None = None, *, is_flood: bool = False
) -> Iterator[Reading]:
    """The metrics of a block of lines. Most blocks have none, which is checked for the whole block first."""
    if is_flood:
        text = text[text.find("\n", -len(text) // SAMPLE) + 1 :]
    lines = list(_candidates(without_colours(text), pattern))
    sampled = lines[:: -(len(lines) // MOST_LINES + 1)]  # from the end: the last is always among them
    for line in reversed(sampled):
        if reading := read_line(line, pattern):
            yield reading


def _candidates(text: str, pattern: re.Pattern[str] | None) -> Iterator[str]:
    lower = text.lower()
    words = [word for word in _WORDS if word in lower]
    if words or pattern is not None:
        for line in text.split("\n"):
            lower = line.lower()
            if any(word in lower for word in words) or (pattern is not None and pattern.search(line)):
                yield line


def read_line(line: str, pattern: re.Pattern[str] | None = None) -> Reading | None:
    """The metrics in a line, or None if it has none."""
    line = without_colours(line)  # Keras 3 colours its progress bar even without a terminal
    if len(line) > LONGEST:
        return None
    if pattern is not None and (match := pattern.search(line)):
        return _from_groups(match.groupdict())
    return _from_bar(line) or _from_text(line) or _header(line)


def _from_bar(line: str) -> Reading | None:
    """The reading of a progress bar of tqdm or Keras."""
    if "%|" in line and (tqdm := re.search(_TQDM, line)):
        epoch, epochs, step, total = (int(text) if text else None for text in tqdm.groups()[:4])
        return Reading(epoch=epoch, epochs=epochs, step=step, total=total, values=metrics(tqdm[5])[0])
    if keras := re.match(_KERAS, line):
        return Reading(step=int(keras[1]), total=int(keras[2]) if keras[2] else None, values=metrics(line)[0])
    return None


def _from_text(line: str) -> Reading | None:
    if not mentions_metric(line):
        return None
    text = cleaned(line)
    values, position = metric_at(text)
    if values:
        return Reading(values=values, **position)
    position, rest = counts(text)
    values, nothing_else = metrics(rest)
    is_report = position or nothing_else or re.search(_FINAL, line)
    return Reading(values=values, **position) if values and is_report else None


def _header(line: str) -> Reading | None:
    """The line with which Keras begins an epoch."""
    epoch = re.match(_EPOCH, line)
    return Reading(epoch=int(epoch[1]), epochs=int(epoch[2])) if epoch else None


def storable(values: dict[str, float]) -> dict[str, float | str]:
    """Values for JSON, which has neither nan nor inf: these become text."""
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


def stored(row: dict[str, object]) -> dict[str, float]:
    """The reverse of `storable`; values that are not numbers are dropped."""
    numbers = {name: _float(value) for name, value in row.items() if isinstance(value, str | float | int)}
    return {name: number for name, number in numbers.items() if number is not None}


def _from_groups(groups: dict[str, str | None]) -> Reading | None:
    """The groups of a user's regex: those of COUNTS; any others are metrics."""
    numbers = {name: _float(text) for name, text in groups.items() if text is not None}
    values = {name: number for name, number in numbers.items() if number is not None}
    counts = {name: _count(values.pop(name, None)) for name in COUNTS}
    if not values and counts["step"] is None and counts["epoch"] is None:
        return None
    return Reading(values=values, **counts)


def _count(number: float | None) -> int | None:
    return int(number) if number is not None and math.isfinite(number) else None


def _float(text: str | float) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
