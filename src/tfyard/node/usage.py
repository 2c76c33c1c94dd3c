"""CPU time and memory of containers, read from /proc: a container leads a session, and its processes stay in it.

Standard library only: the supervisor imports it and must start quickly.
"""

import os
from collections import namedtuple  # that of `typing` is slow to import

from tfyard.node.orphans import stat_fields

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


ResourceUse = namedtuple("ResourceUse", ("cpu", "memory"), defaults=(0.0, 0))
"""Seconds so far, bytes now."""


def measure() -> dict[int, ResourceUse]:
    """Session -> the sum over its processes."""
    found: dict[int, ResourceUse] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (row := _read(entry.name)):
            session, cpu, memory = row
            before = found.get(session, ResourceUse())
            found[session] = ResourceUse(before.cpu + cpu, before.memory + memory)
    return found


def _read(pid: str) -> tuple[int, float, int] | None:
    fields = stat_fields(pid)
    if not fields:
        return None
    return int(fields[3]), (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE
