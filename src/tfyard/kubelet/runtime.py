"""What the API half of a kubelet and a runtime exchange: a Pod goes in, PodStates come out.

A runtime gives pods their containers: by script (scripted.py), or as processes of this machine.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tfyard.errors import TfyardError


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int = 0


class Container(Struct, frozen=True, rename="camel"):
    name: str
    image: str = ""
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """Of an init container: it runs beside the others until they have ended."""
        return self.restart_policy == "Always"


class Spec(Struct, frozen=True, rename="camel"):
    containers: list[Container]
    init_containers: list[Container] = []
    ephemeral_containers: list[Container] = []
    """Those of `kubectl debug`; they are added to a pod that runs."""
    node_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int = 30
    scheduling_gates: list[dict[str, str]] = []


class Condition(Struct, frozen=True, rename="camel"):
    type: str
    status: str
    last_transition_time: str | None = None


class Status(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"
    start_time: datetime | None = None
    """When a kubelet first saw it, which may have been an earlier one."""
    conditions: list[Condition] = []


class Pod(Struct, frozen=True):
    """The few fields that a kubelet and its scripts read."""

    metadata: Meta
    spec: Spec
    status: Status = Status()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


class Waiting(Struct, frozen=True):
    reason: str
    message: str = ""


class Running(Struct, frozen=True):
    since: datetime


class Exited(Struct, frozen=True):
    code: int
    started: datetime
    finished: datetime
    reason: str = ""
    """Such as OOMKilled; empty: Completed or Error, by the code."""
    message: str = ""
    """The termination message."""


class ContainerState(Struct, frozen=True):
    """One container, init containers and sidecars included."""

    current: Waiting | Running | Exited
    restarts: int = 0
    is_ready: bool = False
    """For an init container: it is done, or as a sidecar has started."""
    last: Exited | None = None
    """How the run before this one ended."""
    is_started: bool = True
    """Of a running container: its startup probe, if it has one, has succeeded."""


class PodState(Struct, frozen=True, kw_only=True):
    phase: str
    ip: str
    started: datetime
    changed: datetime
    """Since when this state holds."""
    containers: Mapping[str, ContainerState]
    """By name; those that are missing wait for the init containers."""
    reason: str = ""
    message: str = ""
    host_ip: str = "127.0.0.1"
    disruption: str = ""
    """What took the pod away from its program, whose end is then not its own fault; empty: nothing did."""


Report = Callable[[PodState], Awaitable[None]]


class Runtime(Protocol):
    async def run(self, pod: Pod, report: Report) -> None:
        """Run a pod, in-place restarts included, and report each change of state until it has ended for good.
        Cancelled before `stop`, and when the kubelet ends: from then on, nothing more is reported. A restarted
        kubelet calls it again for every pod that has not finished."""

    async def update(self, pod: Pod) -> None:
        """Containers were added to a pod that runs."""

    async def stop(self, pod: Pod, grace: float) -> PodState:
        """End what is left of a pod, by force after `grace` seconds, and return its final state. Also called for
        pods that have ended or never ran here, and for those whose object is gone (with no grace)."""

    async def forget(self, pod: Pod) -> None:
        """Its object is gone, and it was stopped: logs and scratch space are needed no more."""


class NoSuchContainer(TfyardError):
    """There is no such pod or container here, or it does not run; the message is for the user."""


class LogSource(Struct, frozen=True):
    """The log of one run of one container."""

    path: Path
    is_over: Callable[[], bool]
    """Whether no more will be written to it."""


class Attached(Protocol):
    """A process that was started inside a running container. The caller owns its descriptors; with a terminal,
    `stdin` and `stdout` are its master and `stderr` is None."""

    stdin: int | None
    stdout: int
    stderr: int | None

    async def wait(self) -> int:
        """Its exit code, or 128 + the signal that ended it."""

    def resize(self, width: int, height: int) -> None:
        """Of the terminal, if there is one."""

    def kill(self) -> None: ...


class Console(Protocol):
    """The stdin of a container, for those who attach to it; its output is in its log."""

    has_visitors: bool

    async def write(self, data: bytes) -> None: ...
    def resize(self, width: int, height: int) -> None: ...
    def close_stdin(self) -> None: ...
    def leave(self) -> None: ...


class Containers(Protocol):
    """What the server of a kubelet asks of its runtime."""

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool) -> LogSource:
        """NoSuchContainer if there is none."""

    async def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool, tty: bool
    ) -> Attached:
        """Start a process beside the container's own; NoSuchContainer if that does not run."""

    def console(self, namespace: str, pod: str, container: str) -> Console | None:
        """Of the container's own process, while it runs and if it has a stdin."""

    async def connect(self, namespace: str, pod: str, port: int) -> socket.socket:
        """To localhost:port inside the pod; OSError if nobody listens there."""
