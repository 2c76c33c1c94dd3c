"""Metrics read from the log lines of programs, so that programs need not call an API to report their loss.

These lines are understood: `Step: 2520, loss: 0.027, accuracy: 0.95, auc: 0.976`, also `step 2520/5000`;
`Step 480: Cross entropy = 0.142`, `Step 480: Validation accuracy = 85.0% (N=100)`,
`Final test accuracy = 88.4% (N=353)`; Keras's own `Epoch 2/5` and
`120/500 ━━━ 1s 2ms/step - accuracy: 0.91 - loss: 0.3`, also `120/Unknown`; tqdm's
`Epoch 2/5:  45%|████▌     | 45/100 [00:02<00:02, 20.00it/s, loss=0.3]`; and the user's own regex.
"""

import math
import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))"

# Compiled on first use: many runs need none of them.
_STEP = r"(?i)\b(?:global[_ ])?step[:= ]\s*(\d+)\b(?:/(\d+)\b)?"
_PAIR = rf"([A-Za-z][\w ./-]*?)\s*[:=]\s*({NUMBER})(%?)(?=$|[\s,;)\]])"
_EPOCH = r"\s*Epoch (\d+)/(\d+)"
_KERAS = rf"\s*(\d+)/(?:(\d+)|Unknown)\s.*?\b\w+: (?:{NUMBER})"
_TQDM = r"\| *(\d+)/(\d+) \[[\d:]+<(.*)"
_FINAL = r"(?i)\b(?:final|held-out|test)\b"
_KNOWN = r"(?i)loss|entropy|accuracy|acc$|auc|error|precision|recall|mae|mse|perplexity|reward|f1"
# Keras 3 colours its progress bar even without a terminal.
_COLOUR = r"\x1b(?:\[[0-9;:]*m)?"

LONGEST = 2_000
"""Maximum length of a line that is read: longer ones are data, not a report."""
SAMPLE, MOST_LINES = 20, 1_000
"""Of a flood, the last twentieth of each block is read; of any block, at most 1000 reports."""
_WORDS = ("step", "epoch", "eta:", "%|", "final", "held-out", "test")
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
    lower = text.lower() if any(sign in text for sign in ":=/") else ""
    words = [word for word in _WORDS if word in lower]
    if words or pattern is not None:
        for line in text.split("\n"):
            lower = line.lower()
            if any(word in lower for word in words) or (pattern is not None and pattern.search(line)):
                yield line


def read_line(line: str, pattern: re.Pattern[str] | None = None) -> Reading | None:
    """The metrics in a line, or None if it has none."""
    line = without_colours(line)
    if len(line) > LONGEST:
        return None
    if pattern is not None and (match := pattern.search(line)):
        return _from_groups(match.groupdict())
    return _from_bar(line) or _from_text(line)


def _from_bar(line: str) -> Reading | None:
    """The reading of a progress bar of tqdm or Keras."""
    epoch = re.match(_EPOCH, line)
    header = Reading(epoch=int(epoch[1]), epochs=int(epoch[2])) if epoch else None
    if tqdm := re.search(_TQDM, line):
        step, total, values = int(tqdm[1]), int(tqdm[2]), _pairs(tqdm[3])
        return replace(header or Reading(), step=step, total=total, values=values)
    if header:
        return header
    if keras := re.match(_KERAS, line):
        return Reading(step=int(keras[1]), total=int(keras[2]) if keras[2] else None, values=_pairs(line))
    return None


def _from_text(line: str) -> Reading | None:
    step = re.search(_STEP, line)
    if step is None and not re.search(_FINAL, line):
        return None
    values = _pairs(line[step.end() :] if step else line)
    if not values:
        return None
    total = int(step[2]) if step and step[2] else None
    return Reading(values=values, step=int(step[1]) if step else None, total=total)


def without_colours(line: str) -> str:
    return re.sub(_COLOUR, "", line) if "\x1b" in line else line


def storable(values: dict[str, float]) -> dict[str, float | str]:
    """Values for JSON, which has neither nan nor inf: these become text."""
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


def stored(row: dict[str, object]) -> dict[str, float]:
    """The reverse of `storable`; values that are not numbers are dropped."""
    numbers = {name: _float(value) for name, value in row.items() if isinstance(value, str | float | int)}
    return {name: number for name, number in numbers.items() if number is not None}


def _pairs(text: str) -> dict[str, float]:
    values = {}
    for name, number, percent in re.findall(_PAIR, text):
        key = _name(name)
        if re.search(_KNOWN, key):
            values[key] = float(number) / (100 if percent else 1)
    return values


def _name(text: str) -> str:
    """The last words before the separator: `1s 2ms/step - val_loss` is val_loss."""
    return text.rpartition(" - ")[2].rpartition("INFO ")[2].strip().lower()


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
