"""The cgroups of a node: one folder per controller (version 1), or one (version 2)."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CPU_SETS = ("cpuset.cpus", "cpuset.mems")


def name(state: Path) -> str:
    """The cgroup below which the kubelet keeps its pods."""
    return f"/tfyard-{hashlib.sha256(str(state).encode()).hexdigest()[:8]}"


def folders(state: Path) -> list[Path]:
    controllers = [each for each in sorted(ROOT.iterdir()) if (each / "cgroup.procs").exists()]
    return [each / name(state)[1:] for each in controllers or [ROOT]]


def make(state: Path) -> None:
    for folder in folders(state):
        folder.mkdir(exist_ok=True)
        for file in CPU_SETS:  # in version 1 an empty set takes no process
            if (folder / file).exists() and not (folder / file).read_text().strip():
                (folder / file).write_text((folder.parent / file).read_text())


def remove(state: Path, patience: float = 5.0) -> None:
    """Wait for the kernel, which ends the processes in them."""
    end = time.monotonic() + patience
    while any(_left(state)) and time.monotonic() < end:
        time.sleep(0.1)


def _left(state: Path) -> Iterator[Path]:
    for folder in folders(state):
        for path, _, _ in os.walk(folder, topdown=False):
            try:
                Path(path).rmdir()
            except OSError:
                yield Path(path)
