"""How many CPUs and how much memory processes use at the moment."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from . import usage


class Use(NamedTuple):
    cpus: float
    memory: int
    """Bytes."""

    def plus(self, other: "Use") -> "Use":
        return Use(self.cpus + other.cpus, self.memory + other.memory)


class Meter:
    """CPU time is counted up by the kernel: what is used now is the difference between two measurements."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[float, float]] = {}

    def measure(self, pids: Iterable[int]) -> dict[int, Use]:
        """Process id -> what its session uses; those that have ended are left out."""
        used, now = usage.measure(), time.monotonic()
        seconds = {pid: used[pid].cpu for pid in pids if pid in used}
        uses = {pid: Use(self._cpus(pid, cpu, now), used[pid].memory) for pid, cpu in seconds.items()}
        self._before = {pid: (cpu, now) for pid, cpu in seconds.items()}
        return uses

    def _cpus(self, pid: int, seconds: float, now: float) -> float:
        before, at = self._before.get(pid, (0.0, now - 1))
        return max(0.0, seconds - before) / max(0.1, now - at)
