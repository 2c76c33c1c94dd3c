"""What the API half of a kubelet and a runtime exchange: a pod goes in, PodStates come out.

A runtime gives pods their containers: as processes of this machine (processes.py), or, in tests, by script
(testing/scripted.py).
"""

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.node.states import PodState
from tfyard.views.pods import PodOnNode

Report = Callable[[PodState], Awaitable[None]]


class Runtime(Protocol):
    async def run(self, pod: PodOnNode, report: Report) -> None:
        """Run a pod, in-place restarts included, and report each change of state until it has ended for good.
        Cancelled before `stop`, and when the kubelet ends: from then on, nothing more is reported. A restarted
        kubelet calls it again for every pod that has not finished."""

    async def update(self, pod: PodOnNode) -> None:
        """Start containers that were added to a pod that runs."""

    async def stop(self, pod: PodOnNode, grace: float) -> PodState:
        """End what is left of a pod, by force after `grace` seconds, and return its final state. Also called for
        pods that have ended or never ran here, and for those whose object is gone (with no grace)."""

    async def forget(self, pod: PodOnNode) -> None:
        """Remove logs and scratch space of a pod that was stopped, and whose object is gone."""


class NoSuchContainer(TfyardError):
    """There is no such pod or container here, or it does not run; the message is for the user."""


class LogSource(Struct, frozen=True):
    """The log of one run of one container."""

    path: Path
    is_over: Callable[[], bool]
    """Whether no more will be written to it."""


class ExecProcess(Protocol):
    """A process that was started inside a running container. The caller owns its descriptors; with a terminal,
    `stdin` and `stdout` are its master and `stderr` is None."""

    stdin: int | None
    stdout: int
    stderr: int | None

    async def wait(self) -> int:
        """Wait for the exit code, or 128 + the signal that ended the process."""

    def resize(self, width: int, height: int) -> None:
        """Set the size of the terminal, if there is one."""

    def kill(self) -> None: ...


class Console(Protocol):
    """The stdin of a container, for clients that attach to it; its output is in its log."""

    has_visitors: bool

    async def write(self, data: bytes) -> None: ...
    def resize(self, width: int, height: int) -> None: ...
    def close_stdin(self) -> None: ...
    def leave(self) -> None: ...


class Containers(Protocol):
    """What the server of a kubelet needs of its runtime."""

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool) -> LogSource:
        """Log of a container; NoSuchContainer if there is none."""

    async def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool, tty: bool
    ) -> ExecProcess:
        """Start a process beside the container's own; NoSuchContainer if that does not run."""

    def console(self, namespace: str, pod: str, container: str) -> Console | None:
        """Console of the container's own process, while it runs and if it has a stdin."""

    async def connect(self, namespace: str, pod: str, port: int) -> socket.socket:
        """Connect to localhost:port inside the pod; OSError if nothing listens there."""
