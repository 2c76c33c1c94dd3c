"""The processes of a cluster by /proc: how much memory they use, and whether all have ended."""

import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tfyard.node.orphans import parent_of


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    names = [path.name for path in Path("/proc").iterdir()]
    parents = {int(name): parent_of(name) for name in names if name.isdigit()}
    members = [pid] if pid in parents else []
    for member in members:
        members += [child for child, parent in parents.items() if parent == member]
    return members


def memory(pids: Iterable[int]) -> int:
    """Memory in bytes; a page that several processes share is counted once, if the kernel reports it."""
    return sum(map(_memory_of, pids))


def _memory_of(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        return 0  # it ended meanwhile
    return 0


class Watched:
    """Processes by descriptors, so that another process with a reused id is never taken for one of them."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._open = ExitStack()
        self.descriptors: dict[int, int] = {}
        for pid in pids:
            try:
                self.descriptors[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            self._open.callback(os.close, self.descriptors[pid])

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def signal(self, number: signal.Signals) -> None:
        for descriptor in self.descriptors.values():
            try:
                signal.pidfd_send_signal(descriptor, number)
            except ProcessLookupError:
                continue

    def wait(self, timeout: float) -> list[int]:
        """Processes that run after the timeout. A descriptor is readable when its process has ended."""
        end, left = time.monotonic() + timeout, dict(self.descriptors)
        while left and (seconds := end - time.monotonic()) > 0:
            ended, _, _ = select.select(list(left.values()), [], [], seconds)
            left = {pid: each for pid, each in left.items() if each not in ended}
        return list(left)
