"""Free ports for the tasks, below the kernel's range of ephemeral ports.

A port is tested, then closed so that the task can bind it; meanwhile another run must not choose it. Each run
therefore holds an abstract socket named after each of its ports: the kernel frees those names when the run dies.
"""

import socket
from collections.abc import Iterable, Iterator

from tfyard.errors import TfyardError
from tfyard.model import Task

FIRST, LAST = 20_000, 32_000


class PortPool:
    def __init__(self) -> None:
        self._claims: list[socket.socket] = []

    def take(self, tasks: Iterable[Task]) -> dict[Task, int]:
        free = self._free()
        return {task: next(free) for task in tasks}

    def one(self) -> int:
        return next(self._free())

    def release(self) -> None:
        for claim in self._claims:
            claim.close()
        self._claims.clear()

    def _free(self) -> Iterator[int]:
        for port in range(FIRST, LAST):
            claim = _claim(port)
            if claim is not None:
                self._claims.append(claim)
                yield port
        raise TfyardError(f"no free port between {FIRST} and {LAST}; stop the programs that listen there")


def _claim(port: int) -> socket.socket | None:
    """The socket that reserves the port, or None if another run or any server has it."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0tfyard-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return None
    return claim
