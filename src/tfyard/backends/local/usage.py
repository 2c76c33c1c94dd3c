"""What tasks use, read from /proc: a task leads a session, so its processes are those of that session.

Standard library only: the supervisor uses it, which has to be there at once.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SUFFIXES = {"": 1, "k": 10**3, "m": 1e-3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_SUFFIXES |= {f"{letter}i": 1024**power for power, letter in enumerate("KMGTP", 1)}


class Usage(NamedTuple):
    cpu: float
    """Seconds so far."""
    memory: int
    """Bytes now."""


def measure() -> dict[int, Usage]:
    """Session -> what its processes use together."""
    found: dict[int, Usage] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (row := _read(entry.name)):
            session, cpu, memory = row
            before = found.get(session, Usage(0.0, 0))
            found[session] = Usage(before.cpu + cpu, before.memory + memory)
    return found


def _read(pid: str) -> tuple[int, float, int] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None  # ended while we looked
    return int(fields[3]), (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE


def quantity(text: str) -> float:
    """A Kubernetes quantity as a number: `8Gi`, `500M`, `1.5`, `1e9`."""
    match = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)([A-Za-z]{0,2})", text.strip())
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity")
    return float(match[1]) * _SUFFIXES[match[2]]
