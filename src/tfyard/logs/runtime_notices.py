"""Log lines that are notices of TensorFlow's C++ runtime: dozens per task, and seldom of use.

    2026-01-31 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. …
    I0000 00:00:1769853600.123456   12345 gpu_device.cc:2022] Created device …
    WARNING: All log messages before absl::InitializeLog() is called are written to STDERR

Errors are no notices, except those that every machine without a GPU prints. Nor are lines of Python's absl
logging.
"""

import re
from collections import Counter

# Compiled on first use: most runs need none of them.
_PREFIX = (
    r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: (?P<level>[IWEF]) \S+|"
    r"(?P<short>[IWEF])\d{4} \d\d:\d\d:\d+\.\d+ +\d+ \S+)\.(?:cc|cpp|cu|h|hpp|inc):\d+\] ?"
)
_HARMLESS = (
    r"(?i)Unable to register cu\w+ (?:factory|plugin)|Unable to register \w+ factory|failed call to cuInit"
    r"|could not retrieve CUDA device count|CUDA_ERROR_NO_DEVICE"
)
_NOTICE = (
    r"WARNING: All log messages before absl::InitializeLog\(\) is called"
    r"|To enable the following instructions: "
    r"|Skipping registering GPU devices"
)


def split(line: str) -> tuple[str, bool]:
    """(the line without a notice, whether it had one). A notice may follow an unfinished progress bar."""
    if re.match(_NOTICE, line):
        return "", True
    prefix = re.search(_PREFIX, line)
    if prefix is None or not _is_notice(prefix, line):
        return line, False
    return line[: prefix.start()], True


def _is_notice(prefix: re.Match[str], line: str) -> bool:
    level = prefix["level"] or prefix["short"]
    return level in "IW" or (level == "E" and re.search(_HARMLESS, line[prefix.end() :]) is not None)


class Fold:
    """Removes notices from the lines that are shown, and counts them per task. `active` False: removes nothing."""

    def __init__(self, *, active: bool) -> None:
        self._active = active
        self._counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Number of lines that were removed and not reported yet."""
        return self._counts.total()

    def shown(self, task: str, text: str) -> list[str]:
        lines = text.split("\n")
        if not self._active:
            return lines
        parts = [split(line) for line in lines]
        self._counts[task] += sum(is_folded for _, is_folded in parts)
        return [kept for kept, is_folded in parts if kept or not is_folded]

    def report(self, task: str) -> int:
        """Number of lines of this task that were removed since the last report."""
        return self._counts.pop(task, 0)
