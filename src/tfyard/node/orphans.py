"""Parents, children and owners of processes, as /proc shows them, and how to leave none of them behind.

Standard library only: the supervisor imports it and must start quickly.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterable

MARK = "TFYARD_CONTAINER"
"""Set in the environment of every container; it tells which container an orphan came from."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PF_EXITING = 4
EXIT_TIMEOUT = 10.0
"""Seconds to wait for exits: the kernel takes a while to free the memory of a large process."""

_libc = ctypes.CDLL(None)


def adopt_orphans(yes: bool = True) -> None:
    """Become a subreaper: descendants that lose their parent become our children, not those of process 1."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; end at once if it already has. The signal comes when
    the *thread* that forked ends, so it is for children of a single-threaded process such as the supervisor."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent_of("self") != parent:
        os._exit(128 + signal.SIGKILL)


def kill_adopted(pids: Iterable[int]) -> None:
    """Kill the containers and their orphans after the supervisor was killed: tfyard, a subreaper too, adopts them
    one after another. An exiting process has lost its mark, but its children may not be ours yet: wait for it."""
    own, end = children(), time.monotonic() + EXIT_TIMEOUT
    adopted = {*pids}.intersection(own) | {*filter(owner, own)}
    while adopted or (any(map(_is_releasing_memory, children())) and time.monotonic() < end):
        for pid in adopted:
            kill_group(pid, signal.SIGKILL)
        for pid in adopted:
            os.waitpid(pid, 0)
        time.sleep(0.001)
        adopted = {*filter(owner, children())}


def kill_group(pid: int, number: int) -> None:
    """Signal the whole group if the process leads one (every container does), else the process alone."""
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return  # it has ended by itself


def children(also_of: int | None = None) -> list[int]:
    """Direct children, ours and those of another process; every orphan is among them."""
    parents = {os.getpid(), also_of} - {None}
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(name) in parents]


def parent_of(pid: int | str) -> int | None:
    """Parent of a process, also from a PID namespace, where os.getppid() is 0 if the parent is outside."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else None


def is_exiting(pid: int) -> bool:
    """Whether a process ends by its own doing, which takes a large one a while; signals no longer reach it."""
    fields = stat_fields(pid)
    return not fields or bool(int(fields[6]) & PF_EXITING)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            caught = next((line for line in file if line.startswith(b"SigCgt:")), b"SigCgt: 0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def group(leader: int) -> list[int]:
    """The running processes of a group, without the one that leads it."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != leader]
    fields = {pid: stat_fields(pid) for pid in pids}
    return [pid for pid, each in fields.items() if each and int(each[2]) == leader and each[0] != b"Z"]


def _is_releasing_memory(pid: int) -> bool:
    """Whether a process has lost its memory, and its environment with it, but is no zombie yet."""
    fields = stat_fields(pid)
    return bool(fields) and fields[0] != b"Z" and fields[20] == b"0"


def stat_fields(pid: int | str) -> list[bytes]:
    """The fields after the name: state, parent, ...; empty if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def owner(pid: int) -> str | None:
    """The id of the container that a process belongs to."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    mark = MARK.encode() + b"="
    return next((entry[len(mark) :].decode() for entry in entries if entry.startswith(mark)), None)


def next_ended() -> int | None:
    """A child that has ended, not waited for yet: until it is, its process group can be found."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended else None


def reap_children() -> bool:
    """Reap the children that have ended. Returns whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
