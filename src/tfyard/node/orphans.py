"""Whose child a process is, and who left it behind; read from /proc, the only one who knows.

Standard library only: the supervisor uses it, which has to be there at once.
"""

import os
import signal
import time
from collections.abc import Iterable

MARK = "TFYARD_CONTAINER"
"""Set in every task's environment: the sign by which an orphan's owner is known."""
PF_EXITING = 4
PATIENCE = 10.0
"""Seconds; freeing the memory of a large process takes its time."""


def kill_inherited(tasks: Iterable[int]) -> None:
    """For tfyard itself, should its supervisor be killed: as a subreaper it inherits the tasks and, by and by,
    what they leave behind. Who is dying bears no mark any more, but may have children who are not ours yet."""
    mine, end = children(), time.monotonic() + PATIENCE
    doomed = {*tasks}.intersection(mine) | {*filter(owner, mine)}
    while doomed or (any(map(_is_dying, children())) and time.monotonic() < end):
        for pid in doomed:
            kill_group(pid, signal.SIGKILL)
        for pid in doomed:
            os.waitpid(pid, 0)
        time.sleep(0.001)
        doomed = {*filter(owner, children())}


def kill_group(pid: int, number: int) -> None:
    """A whole group if the process leads one (every task does), else the process itself."""
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return  # gone by itself in the meantime, which is what was wanted


def children(also_of: int | None = None) -> list[int]:
    """Direct children, ours and those of another process; among them is every orphan."""
    parents = {os.getpid(), also_of} - {None}
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(name) in parents]


def parent(pid: int | str) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def is_ending(pid: int) -> bool:
    """Beyond the reach of signals: its end is its own doing, though a large process takes its time to be gone."""
    fields = _stat(pid)
    return not fields or bool(int(fields[6]) & PF_EXITING)


def _is_dying(pid: int) -> bool:
    """It has given up its memory, and its environment with it, and is not dead yet."""
    fields = _stat(pid)
    return bool(fields) and fields[0] != b"Z" and fields[20] == b"0"


def _stat(pid: int | str) -> list[bytes]:
    """What follows a process's name: its state, its parent, ...; nothing if it ended while we looked."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def owner(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    mark = MARK.encode() + b"="
    return next((entry[len(mark) :].decode() for entry in entries if entry.startswith(mark)), None)
