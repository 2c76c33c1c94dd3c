"""The state of a pod and of its containers at one moment, as values."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from tfyard.model import Phase


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
    """Reason, such as OOMKilled; empty: Completed or Error, by the code."""
    message: str = ""
    """The termination message."""

    @property
    def why(self) -> str:
        """The reason in Kubernetes' words."""
        return self.reason or ("Error" if self.code else "Completed")


def lost(started: datetime) -> Exited:
    """The end of a container that ran when its node went down, as containerd reports it after the reboot."""
    return Exited(255, started, datetime.now(UTC), "Unknown")


class ContainerState(Struct, frozen=True):
    """One container, init containers and sidecars included."""

    current: Waiting | Running | Exited
    restarts: int = 0
    is_ready: bool = False
    """Whether it is ready; an init container is when it has succeeded, or as a sidecar has started."""
    last: Exited | None = None
    """End of the run before this one."""
    is_started: bool = True
    """Whether the startup probe of a running container, if it has one, has succeeded."""
    restart_due: bool = False
    """Whether the container has ended and will be started again, or waits for permission to be."""

    @property
    def ended(self) -> Exited | None:
        """The run that ended last."""
        return self.current if isinstance(self.current, Exited) else self.last


class PodState(Struct, frozen=True, kw_only=True):
    phase: Phase
    ip: str
    started: datetime
    changed: datetime
    """Time since which this state holds."""
    containers: Mapping[str, ContainerState]
    """Containers by name; those that are missing wait for the init containers."""
    reason: str = ""
    message: str = ""
    host_ip: str = "127.0.0.1"
