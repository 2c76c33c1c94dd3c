"""What the API half of a kubelet and a runtime exchange: a Pod goes in, PodStates come out.

A runtime gives pods their containers: by script (scripted.py), or as processes of this machine.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int = 0


class Container(Struct, frozen=True):
    name: str
    image: str = ""


class Spec(Struct, frozen=True, rename="camel"):
    containers: list[Container]
    init_containers: list[Container] = []
    node_name: str = ""
    restart_policy: str = "Always"
    scheduling_gates: list[dict[str, str]] = []


class Status(Struct, frozen=True):
    phase: str = "Pending"


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


Report = Callable[[PodState], Awaitable[None]]


class Runtime(Protocol):
    async def run(self, pod: Pod, report: Report) -> None:
        """Run a pod, in-place restarts included, and report each change of state until it has ended for good.
        Cancelled before `stop`, and when the kubelet ends: from then on, nothing more is reported. A restarted
        kubelet calls it again for every pod that has not finished."""

    async def stop(self, pod: Pod, grace: float) -> PodState:
        """End what is left of a pod, by force after `grace` seconds, and return its final state. Also called for
        pods that have ended or never ran here, and for those whose object is gone (with no grace)."""
