"""CPU time and memory of containers, read from /proc: a container leads a session, and its processes stay in it.

Standard library only: the supervisor imports it and must start quickly.
"""

import os
from collections import namedtuple  # importing `typing` takes 9 ms

from tfyard.node.orphans import stat_fields

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


ResourceUse = namedtuple("ResourceUse", ("cpu", "memory"), defaults=(0.0, 0))
"""CPU time in seconds so far, and memory in bytes now."""


def measure() -> dict[int, ResourceUse]:
    """Session -> the use of all its processes."""
    sessions: dict[int, ResourceUse] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (row := _read(entry.name)):
            session, cpu, memory = row
            before = sessions.get(session, ResourceUse())
            sessions[session] = ResourceUse(before.cpu + cpu, before.memory + memory)
    return sessions


def _read(pid: str) -> tuple[int, float, int] | None:
    fields = stat_fields(pid)
    if not fields:
        return None
    return int(fields[3]), (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE
