"""Memory limits of containers, the use of each, and what this machine has.

The kernel enforces limits where this process may make control groups: exactly, as on a cluster's node. Where it
may not (most laptops without delegation), memory is sampled. Never by RLIMIT_AS: TensorFlow maps far more address
space than it uses, and would not even start.
"""

import asyncio
import os
import shutil
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Manifest
from tfyard.model.quantity import amount

from . import usage
from .processes import ContainerCommand, Processes

CONTROL_GROUPS = Path("/sys/fs/cgroup")
MEASURE_EVERY = 1.0
MEASURE_LIMITS_EVERY = 0.25
"""Seconds between measurements if a container has a memory limit and no control group."""


class Use(NamedTuple):
    cpus: float
    memory: int
    """Memory in bytes."""

    def plus(self, other: "Use") -> "Use":
        return Use(self.cpus + other.cpus, self.memory + other.memory)


class MemoryLimits:
    """Kills processes that take more memory than they may, and reports the use of all."""

    def __init__(
        self, processes: Processes, on_measured: Callable[[dict[str, Use]], None], *, use_cgroups: bool
    ) -> None:
        self._processes, self._on_measured, self._use_cgroups = processes, on_measured, use_cgroups
        self._groups: dict[str, ControlGroup] = {}
        self._sampled: dict[str, float] = {}
        """Limits of processes without a control group: id -> bytes."""
        self._killed: set[str] = set()
        self._meter = UsageMeter()

    def limit(self, id: str, command: ContainerCommand, limit: float | None) -> ContainerCommand:
        """The command, to be started under this id, with its control group if it gets one."""
        if limit is None:
            return command
        if self._make_group is None:
            self._sampled[id] = limit
            return command
        group = self._groups[id] = self._make_group(f"tfyard-{id.replace('/', '-')}", int(limit))
        return replace(command, cgroup=group.procs)

    def ended(self, id: str) -> bool:
        """Forget a process that has ended; true if it took too much memory."""
        group = self._groups.pop(id, None)
        self._sampled.pop(id, None)
        is_killed = id in self._killed
        self._killed.discard(id)
        return (group is not None and group.close()) or is_killed

    async def measure(self) -> None:
        """Measure and enforce limits until cancelled."""
        while True:
            await asyncio.sleep(MEASURE_LIMITS_EVERY if self._sampled else MEASURE_EVERY)
            self._measure_once()

    def _measure_once(self) -> None:
        ids = {pid: id for id, pid in self._processes.pids.items()}
        uses = {ids[pid]: use for pid, use in self._meter.measure(ids).items()}
        for id, use in uses.items():
            if use.memory > self._sampled.get(id, float("inf")):
                self._killed.add(id)
                self._processes.signal(id, signal.SIGKILL)
        self._on_measured(uses)

    @cached_property
    def _make_group(self) -> Callable[[str, int], "ControlGroup"] | None:
        return find_control_groups() if self._use_cgroups else None


def memory_limit(container: Manifest) -> float | None:
    limit = amount(((container.get("resources") or {}).get("limits") or {}).get("memory"))
    return None if limit is None else float(limit)


class UsageMeter:
    """Use of processes. The kernel counts CPU time up, so use is the difference between two measurements."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[float, float]] = {}

    def measure(self, pids: Iterable[int]) -> dict[int, Use]:
        """Process id -> the use of its session; processes that have ended are left out."""
        used, now = usage.measure(), time.monotonic()
        seconds = {pid: used[pid].cpu for pid in pids if pid in used}
        uses = {pid: Use(self._cpus(pid, cpu, now), used[pid].memory) for pid, cpu in seconds.items()}
        self._before = {pid: (cpu, now) for pid, cpu in seconds.items()}
        return uses

    def _cpus(self, pid: int, seconds: float, now: float) -> float:
        before, at = self._before.get(pid, (0.0, now - 1))
        return max(0.0, seconds - before) / max(0.1, now - at)


class MachineMeter:
    """Use of the whole machine, or of those of its processors that this process may use."""

    def __init__(self) -> None:
        self._before, self._at = _busy_seconds(), time.monotonic()

    def measure(self) -> Use:
        """Use since the last call. Memory that the kernel would give away at once is not in use."""
        seconds, now = _busy_seconds(), time.monotonic()
        cpus = max(0.0, seconds - self._before) / max(0.1, now - self._at)
        self._before, self._at = seconds, now
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {line.partition(":")[0]: int(line.split()[1]) << 10 for line in lines}
        return Use(cpus, sizes["MemTotal"] - sizes["MemAvailable"])


def _busy_seconds() -> float:
    """Seconds of user, nice, system, interrupts and stolen time; not idle (3), nor waiting for a disk (4)."""
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    ticks = sum(int(row[1 + kind]) for row in rows if row[0] in names for kind in (0, 1, 2, 5, 6, 7))
    return ticks / os.sysconf("SC_CLK_TCK")


def capacity(folder: Path, pretended: Mapping[str, str] | None = None) -> dict[str, str]:
    """Resources of this machine: processors, memory, the disk of the folder. `pretended`: resources that it only
    claims to have, such as GPUs, so that pods that request them are scheduled."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory >> 10}Ki",
        "ephemeral-storage": f"{shutil.disk_usage(folder).total >> 10}Ki",
        "pods": "110",
        **(pretended or {}),
    }


class RecentUse:
    """Use in the last `seconds`: the mean of CPU, and the last measurement of memory."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._last = seconds, 0.0
        self._measured: deque[tuple[float, float, dict[str, Use]]] = deque()
        """Time and length of each measurement, and the use by id."""

    def add(self, uses: dict[str, Use], now: float) -> None:
        length = now - self._last if self._measured else 1.0
        self._measured.append((now, length, uses))
        self._last = now
        while now - self._measured[0][0] >= self._seconds:
            self._measured.popleft()

    def of(self, id: str) -> tuple[Use, float] | None:
        """Use of an id, and of how many seconds that is; None if the last measurement does not have it."""
        known = [(length, uses[id]) for _, length, uses in self._measured if id in uses]
        if not known or id not in self._measured[-1][2]:
            return None
        total = sum(length for length, _ in known)
        return Use(sum(length * use.cpus for length, use in known) / total, known[-1][1].memory), total


class Flavour(Struct, frozen=True):
    """File names of one version of control groups."""

    limit: str
    kills: str
    swap: str


V2 = Flavour(limit="memory.max", kills="memory.events", swap="memory.swap.max")
V1 = Flavour(limit="memory.limit_in_bytes", kills="memory.oom_control", swap="memory.memsw.limit_in_bytes")


class ControlGroup:
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
        """Remove the group; true if the kernel killed a process in it for lack of memory."""
        text = (self.path / self._flavour.kills).read_text()
        with suppress(OSError):  # a dying process may still be in it; the supervisor removes it at the end
            self.path.rmdir()
        return any(line.startswith("oom_kill ") and not line.endswith(" 0") for line in text.splitlines())


def find_control_groups() -> Callable[[str, int], ControlGroup] | None:
    """A function that makes groups (name, bytes), or None where that is not allowed."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            parent, flavour = CONTROL_GROUPS / "memory" / path.lstrip("/"), V1
        elif controllers == "":
            parent, flavour = CONTROL_GROUPS / path.lstrip("/"), V2
        else:
            continue
        if _is_usable(parent, flavour):
            return lambda name, limit, at=parent, of=flavour: ControlGroup(at / name, of, limit)  # type: ignore[misc]
    return None


def _is_usable(parent: Path, flavour: Flavour) -> bool:
    """Whether a group can be made, has a memory limit and accepts a process, by trying."""
    try:
        group = ControlGroup(parent / f"tfyard-probe-{os.getpid()}", flavour, 1 << 40)
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
