"""One pod as processes: init containers in turn, containers side by side, restarts in place, one phase.

This is the kubelet's part of a pod's life. What follows from its end is decided by the controller that created it.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Manifest, Phase
from tfyard.model.backoff import Backoff

from .volumes import Volumes

RESTART_IN_PLACE = Backoff(first=1.0, longest=60.0)
"""The first restart in place is immediate. Kubelets and operators wait ten times as long; a person at a terminal
should not have to."""
DEFAULT_GRACE = 30


class Ended(Struct, frozen=True):
    """The last run of a container that ended."""

    started: datetime | None
    at: datetime
    reason: str


class ContainerState(Struct, frozen=True, kw_only=True):
    name: str
    is_init: bool = False
    is_sidecar: bool = False
    """An init container with `restartPolicy: Always`: it runs beside the others."""
    is_running: bool = False
    starts: int = 0
    exit_code: int | None = None
    """Of its last end."""
    reason: str = ""
    message: str = ""
    """The end of its log, if it failed."""
    started: datetime | None = None
    """When its present run started, or its last."""
    ended: Ended | None = None

    @property
    def restarts(self) -> int:
        return max(0, self.starts - 1)


class PodState(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    phase: Phase
    reason: str = ""
    """Why it was evicted, if it was."""
    started: datetime | None = None
    deleting: datetime | None = None
    """When it will be gone at the latest, as Kubernetes' deletionTimestamp."""
    restart_due: bool = False
    """A container has ended whose restart in place is waited for, or was not allowed."""
    containers: tuple[ContainerState, ...] = ()

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"]["uid"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def is_running(self) -> bool:
        return any(container.is_running for container in self.containers)

    @property
    def is_ready(self) -> bool:
        return self.phase == "Running" and all(c.is_running for c in self.containers if not c.is_init)


class Container(Struct, kw_only=True, eq=False):
    """`starts` counts every time it was started."""

    spec: Manifest
    is_init: bool = False
    is_sidecar: bool = False
    is_running: bool = False
    starts: int = 0
    code: int | None = None
    reason: str = ""
    message: str = ""
    started: datetime | None = None
    ended: Ended | None = None

    @property
    def name(self) -> str:
        return str(self.spec.get("name"))

    @property
    def has_ended(self) -> bool:
        return self.code is not None and not self.is_running

    def state(self) -> ContainerState:
        return ContainerState(
            name=self.name,
            is_init=self.is_init,
            is_sidecar=self.is_sidecar,
            is_running=self.is_running,
            starts=self.starts,
            exit_code=self.code,
            reason=self.reason,
            message=self.message,
            started=self.started,
            ended=self.ended,
        )


class Host(Protocol):
    """What a pod needs of the node."""

    def start(self, pod: "Pod", container: Container) -> None: ...
    def stop(self, container: Container, grace: float) -> None: ...
    def later(self, delay: float, call: Callable[[], None]) -> None: ...
    def changed(self) -> None: ...


class Options(Struct, frozen=True, kw_only=True):
    """What the creator of a pod decides beyond its manifest."""

    log_name: Callable[[str], str]
    """From the name of a container to that of its logs."""
    main: str = ""
    """The container whose end is the end of the pod; empty: all of them, as Kubernetes has it."""
    may_restart: Callable[[], bool] = lambda: True
    """Asked before each restart in place. After a refusal, the pod waits to be deleted."""


class Pod:
    def __init__(self, manifest: Manifest, volumes: Volumes, options: Options, host: Host) -> None:
        self.manifest, self.volumes, self.options, self.host = manifest, volumes, options, host
        spec = manifest["spec"]
        self.policy: str = spec["restartPolicy"]
        self.grace = float(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE)
        self.inits = [_init_container(c) for c in spec.get("initContainers") or []]
        self.containers = [Container(spec=c) for c in spec["containers"]]
        self.phase: Phase = "Pending"
        self.evicted = ""
        """Why; empty: it was not."""
        self.started: datetime | None = None
        self.deleting: datetime | None = None

    @property
    def all_containers(self) -> list[Container]:
        return [*self.inits, *self.containers]

    @property
    def deciding(self) -> list[Container]:
        """The containers whose end decides how the pod ended."""
        named = [container for container in self.containers if container.name == self.options.main]
        return named or self.containers

    @property
    def counted(self) -> list[Container]:
        """The containers whose restarts count: what sidecars do is nobody's failure."""
        return [*(init for init in self.inits if not init.is_sidecar), *self.deciding]

    @property
    def is_gone(self) -> bool:
        return self.deleting is not None and not self._is_running

    def state(self) -> PodState:
        return PodState(
            manifest=self.manifest,
            phase=self.phase,
            reason=self.evicted,
            started=self.started,
            deleting=self.deleting,
            restart_due=self._goes_on and any(map(self._is_restart_due, self.counted)),
            containers=tuple(container.state() for container in self.all_containers),
        )

    def begin(self) -> None:
        """Start what comes next: the first init container that has not succeeded, else all containers."""
        self.started = self.started or datetime.now(UTC)
        for init in self.inits:
            if init.is_sidecar and not init.is_running:
                self._start(init)
            elif not init.is_sidecar and init.code != 0:
                self._start(init)
                return
        for container in self.containers:
            if not container.is_running and container.code is None:
                self._start(container)
        self.phase = "Running"
        self.host.changed()

    def exited(self, container: Container, code: int, message: str) -> None:
        container.is_running, container.code, container.message = False, code, message
        container.reason = container.reason or ("Error" if code else "Completed")
        container.ended = Ended(container.started, datetime.now(UTC), container.reason)
        if self._goes_on:
            self._go_on(container)
        elif self.evicted and not self._is_running:
            self.phase = "Failed"
        self.host.changed()

    def delete(self, grace: float | None = None) -> None:
        """Ask every container to stop; those that have not after the grace period are killed."""
        grace = self.grace if grace is None else grace
        if self.deleting is None:
            self.deleting = datetime.now(UTC) + timedelta(seconds=grace)
        self._stop(grace)

    def evict(self, reason: str, grace: float | None = None) -> None:
        """As a drain or a preemption does: stopped, and Failed if it had not ended."""
        if self._goes_on:
            self.evicted = reason
            self._stop(self.grace if grace is None else grace)

    @property
    def _is_running(self) -> bool:
        return any(container.is_running for container in self.all_containers)

    @property
    def _goes_on(self) -> bool:
        return self.deleting is None and not self.evicted and self.phase in ("Pending", "Running")

    def _go_on(self, container: Container) -> None:
        """After an end: the same container again, the next one, or the end of the pod."""
        if self._runs_again(container):
            self._restart(container)
        elif container in self.inits:
            self.phase = "Failed" if container.code else self.phase
            if container.code == 0:
                self.begin()
        elif all(c.has_ended and not self._runs_again(c) for c in self.deciding):
            self.phase = "Failed" if any(c.code for c in self.deciding) else "Succeeded"
            for other in self.all_containers:
                self.host.stop(other, self.grace)

    def _restart(self, container: Container) -> None:
        if container in self.counted and not self.options.may_restart():
            return
        backoff = replace(RESTART_IN_PLACE, failures=container.starts - 1)
        self.host.later(backoff.delay(), lambda: self._start_again(container))

    def _is_restart_due(self, container: Container) -> bool:
        return container.has_ended and self._runs_again(container)

    def _runs_again(self, container: Container) -> bool:
        if container.is_sidecar:
            return True
        if container.is_init:
            return container.code != 0 and self.policy != "Never"
        return self.policy == "Always" or (self.policy == "OnFailure" and container.code != 0)

    def _start_again(self, container: Container) -> None:
        if self._goes_on:
            self._start(container)
            self.host.changed()

    def _start(self, container: Container) -> None:
        container.is_running, container.reason = True, ""
        container.started = datetime.now(UTC)
        container.starts += 1
        self.host.start(self, container)

    def _stop(self, grace: float) -> None:
        for container in self.all_containers:
            if container.is_running:
                self.host.stop(container, grace)
        if self.evicted and not self._is_running:
            self.phase = "Failed"
        self.host.changed()


def _init_container(spec: Manifest) -> Container:
    return Container(spec=spec, is_init=True, is_sidecar=spec.get("restartPolicy") == "Always")
