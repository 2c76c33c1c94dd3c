"""Whose child a process is, and who left it behind; read from /proc, the only one who knows.

Standard library only: the supervisor uses it, which has to be there at once.
"""

import os
import signal

MARK = "TFYARD_CONTAINER"
"""Set in every task's environment: the sign by which an orphan's owner is known."""


def kill_marked_children() -> None:
    """For tfyard itself, should its supervisor be killed: as a subreaper it then inherits the tasks."""
    while marked := [pid for pid in children() if owner(pid) is not None]:
        for pid in marked:
            kill_group(pid, signal.SIGKILL)
        for pid in marked:
            os.waitpid(pid, 0)


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


def parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None  # ended while we looked


def owner(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    mark = MARK.encode() + b"="
    return next((entry[len(mark) :].decode() for entry in entries if entry.startswith(mark)), None)
