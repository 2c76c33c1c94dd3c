"""What tasks use, read from /proc: a task leads a session, so its processes are those of that session.

Standard library only: the supervisor uses it, which has to be there at once.
"""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


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
