"""Memory limits by the kernel, where this process may make control groups: exact, as on a cluster's node.

Where it may not (most laptops without delegation), memory is sampled instead, see memory.py. Never by
RLIMIT_AS: TensorFlow maps far more address space than it uses, and would not even start.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

ROOT = Path("/sys/fs/cgroup")


class Flavour(Struct, frozen=True):
    """The files of one version of the interface."""

    limit: str
    kills: str
    swap: str


V2 = Flavour(limit="memory.max", kills="memory.events", swap="memory.swap.max")
V1 = Flavour(limit="memory.limit_in_bytes", kills="memory.oom_control", swap="memory.memsw.limit_in_bytes")


class Group:
    """The control group of one container; removed when the container has ended."""

    def __init__(self, path: Path, flavour: Flavour, limit: int) -> None:
        self.path, self._flavour = path, flavour
        path.mkdir()
        try:
            (path / flavour.limit).write_text(str(limit))
            swap = path / flavour.swap
            if swap.exists():  # else the container would continue in the swap, and slow down all others
                swap.write_text(str(limit) if flavour is V1 else "0")
        except OSError:
            path.rmdir()
            raise

    @property
    def procs(self) -> str:
        """The file by which a process enters the group."""
        return str(self.path / "cgroup.procs")

    def close(self) -> bool:
        """Remove it; true if the kernel killed a process in it for lack of memory."""
        text = (self.path / self._flavour.kills).read_text()
        with suppress(OSError):  # a dying process may still be in it; the supervisor removes it at the end
            self.path.rmdir()
        return any(line.startswith("oom_kill ") and not line.endswith(" 0") for line in text.splitlines())


def find() -> Callable[[str, int], Group] | None:
    """A function that makes groups (name, bytes), or None where that is not allowed."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            parent, flavour = ROOT / "memory" / path.lstrip("/"), V1
        elif controllers == "":
            parent, flavour = ROOT / path.lstrip("/"), V2
        else:
            continue
        if _is_usable(parent, flavour):
            return lambda name, limit, at=parent, of=flavour: Group(at / name, of, limit)  # type: ignore[misc]
    return None


def _is_usable(parent: Path, flavour: Flavour) -> bool:
    """Try it: whether a group can be made, has a memory limit, and accepts a process."""
    try:
        group = Group(parent / f"tfyard-probe-{os.getpid()}", flavour, 1 << 40)
    except OSError:
        return False
    try:
        pid = os.fork()
        if pid == 0:
            _enter(group.procs)
        return os.waitpid(pid, 0)[1] == 0
    finally:
        group.path.rmdir()


def _enter(procs: str) -> None:
    try:
        Path(procs).write_text(str(os.getpid()))
    except OSError:
        os._exit(1)
    os._exit(0)
