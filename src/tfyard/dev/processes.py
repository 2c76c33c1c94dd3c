"""The processes of a box as /proc shows them: how much memory they use, and whether all have ended."""

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
    found = [pid] if pid in parents else []
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def memory(pids: Iterable[int]) -> int:
    """Bytes; a page that several processes share is counted once, where the kernel tells."""
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
    """Processes by descriptors: an id that is used again is never taken for one of them."""

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
        """Those that have not ended by then. A descriptor becomes readable when its process ends."""
        end, left = time.monotonic() + timeout, dict(self.descriptors)
        while left and (rest := end - time.monotonic()) > 0:
            ended, _, _ = select.select(list(left.values()), [], [], rest)
            left = {pid: each for pid, each in left.items() if each not in ended}
        return list(left)
