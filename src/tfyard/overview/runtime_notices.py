"""Which log lines are notices of TensorFlow's C++ runtime: dozens per task, and seldom of use to anyone.

    2026-01-31 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. …
    I0000 00:00:1769853600.123456   12345 gpu_device.cc:2022] Created device …
    WARNING: All log messages before absl::InitializeLog() is called are written to STDERR

Errors stay, except those that every machine without a GPU prints. So do lines of Python's own absl logging.
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
    """(what is no notice, whether some was). A notice may follow a progress bar that was not finished."""
    if re.match(_NOTICE, line):
        return "", True
    found = re.search(_PREFIX, line)
    if found is None or not _is_notice(found, line):
        return line, False
    return line[: found.start()], True


def _is_notice(found: re.Match[str], line: str) -> bool:
    level = found["level"] or found["short"]
    return level in "IW" or (level == "E" and re.search(_HARMLESS, line[found.end() :]) is not None)


class Fold:
    """Takes notices out of what is shown, and counts it for each task. `active` False: takes out nothing."""

    def __init__(self, *, active: bool) -> None:
        self._active = active
        self._counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Lines that were taken out and not reported yet."""
        return self._counts.total()

    def shown(self, task: str, text: str) -> list[str]:
        lines = text.split("\n")
        if not self._active:
            return lines
        parts = [split(line) for line in lines]
        self._counts[task] += sum(is_folded for _, is_folded in parts)
        return [rest for rest, is_folded in parts if rest or not is_folded]

    def report(self, task: str) -> int:
        """How many lines of this task were taken out since the last report."""
        return self._counts.pop(task, 0)
