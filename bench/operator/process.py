"""The operator under measurement: any program, known by its command line only."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Measured:
    """CPU and memory of a process by the kernel. Child processes do not count, so use no wrapper."""

    def __init__(self, pid: int) -> None:
        self._folder = Path("/proc") / str(pid)

    def cpu(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_megabytes(self) -> float:
        lines = (self._folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def started(command: str, log: Path) -> Iterator[Measured]:
    with log.open("ab") as output:
        process = subprocess.Popen(shlex.split(command), stdout=output, stderr=output)
    try:
        yield Measured(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
