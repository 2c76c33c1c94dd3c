"""One pod as processes: init containers in turn, containers side by side, restarts in place, one phase.

This is the kubelet's part of a pod's life. It decides nothing about the job; that is the planner's.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import TENSORFLOW_CONTAINER, Manifest, Phase, Pod, Task
from tfyard.model.backoff import Backoff
from tfyard.model.names import ATTEMPT

RESTART_IN_PLACE = Backoff(first=1.0, longest=60.0)
"""The first restart in place is immediate. The kubelet waits ten times as long; whoever watches a terminal should
not have to."""
DEFAULT_GRACE = 30


class Container(Struct, kw_only=True):
    """What is known of one container; `starts` counts every time it was begun."""

    name: str
    spec: Manifest
    is_sidecar: bool = False
    is_running: bool = False
    starts: int = 0
    code: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def restarts(self) -> int:
        return max(0, self.starts - 1)

    @property
    def is_over(self) -> bool:
        return self.code is not None and not self.is_running


class Host(Protocol):
    """What a pod needs of the machine."""

    def launch(self, pod: "LocalPod", container: Container) -> None: ...
    def ask_to_stop(self, pod: "LocalPod", container: Container, *, force: bool) -> None: ...
    def later(self, delay: float, call: Callable[[], None]) -> None: ...
    def changed(self) -> None: ...


class LocalPod:
    def __init__(self, manifest: Manifest, task: Task, uid: str, host: Host) -> None:
        self.manifest, self.task, self.uid, self.host = manifest, task, uid, host
        spec = manifest["spec"]
        self.name: str = manifest["metadata"]["name"]
        self.policy: str = spec["restartPolicy"]
        self.grace = int(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE)
        self.inits = [
            _container(c, is_sidecar=c.get("restartPolicy") == "Always") for c in _list(spec, "init")
        ]
        self.containers = [_container(c) for c in spec["containers"]]
        self.phase: Phase = "Pending"
        self.disrupted = False
        self.deleting: datetime | None = None

    @property
    def everyone(self) -> list[Container]:
        return [*self.inits, *self.containers]

    @property
    def is_gone(self) -> bool:
        return self.deleting is not None and not any(c.is_running for c in self.everyone)

    def begin(self) -> None:
        """Start whatever comes next: the first init container that is not done, else all containers."""
        for init in self.inits:
            if init.is_sidecar and not init.is_running:
                self._launch(init)
            elif not init.is_sidecar and init.code != 0:
                self._launch(init)
                return
        for container in self.containers:
            if not container.is_running and container.code is None:
                self._launch(container)
        self.phase = "Running"
        self.host.changed()

    def exited(self, container: Container, code: int, message: str) -> None:
        container.is_running, container.code, container.message = False, code, message
        container.reason = container.reason or ("Error" if code else "Completed")
        if self.deleting is None and not self.disrupted and self.phase in ("Pending", "Running"):
            self._go_on(container)
        elif self.disrupted and not any(c.is_running for c in self.everyone):
            self.phase = "Failed"
        self.host.changed()

    def stop(self, *, force: bool = False) -> None:
        """Ask everybody to end; whoever has not after the grace period is killed."""
        if self.deleting is None:
            self.deleting = datetime.now(UTC) + timedelta(seconds=0 if force else self.grace)
        self._stop_all(force=force)

    def evict(self) -> None:
        """Taken away by the cluster, as a drain or a preemption would."""
        self.disrupted = True
        self._stop_all(force=False)

    def observed(self) -> Pod:
        main = self._main()
        failed = next((c for c in self.everyone if c.code and not c.is_sidecar), main)
        shown = failed if main.code is None or main.code == 0 else main
        return Pod(
            name=self.name,
            uid=self.uid,
            task=self.task,
            attempt=int(self.manifest["metadata"]["annotations"].get(ATTEMPT, "0")),
            phase=self.phase,
            ready=self.phase == "Running" and all(c.is_running for c in self.containers),
            exit_code=shown.code,
            message=shown.message,
            reason="Preempted" if self.disrupted else shown.reason,
            restarts=sum(c.restarts for c in self.everyone),
            disrupted=self.disrupted,
            deleting=self.deleting,
        )

    def _main(self) -> Container:
        named = (c for c in self.containers if c.name == TENSORFLOW_CONTAINER)
        return next(named, self.containers[0])

    def _go_on(self, container: Container) -> None:
        """After an end: again, the next one, or the end of the pod."""
        if self._runs_again(container):
            backoff = replace(RESTART_IN_PLACE, failures=container.restarts)
            self.host.later(backoff.delay(), lambda: self._again(container))
        elif container in self.inits:
            self.phase = "Failed" if container.code else self.phase
            if container.code == 0:
                self.begin()
        elif all(c.is_over and not self._runs_again(c) for c in self.containers):
            self.phase = "Failed" if any(c.code for c in self.containers) else "Succeeded"
            for sidecar in self.inits:
                self.host.ask_to_stop(self, sidecar, force=False)

    def _runs_again(self, container: Container) -> bool:
        if container.is_sidecar:
            return True
        if container in self.inits:
            return container.code != 0 and self.policy != "Never"
        return self.policy == "Always" or (self.policy == "OnFailure" and container.code != 0)

    def _again(self, container: Container) -> None:
        if self.deleting is None and not self.disrupted and self.phase in ("Pending", "Running"):
            self._launch(container)
            self.host.changed()

    def _launch(self, container: Container) -> None:
        container.is_running, container.reason = True, ""
        container.starts += 1
        self.host.launch(self, container)

    def _stop_all(self, *, force: bool) -> None:
        for container in self.everyone:
            if container.is_running:
                self.host.ask_to_stop(self, container, force=force)
        if not any(c.is_running for c in self.everyone) and self.disrupted:
            self.phase = "Failed"
        self.host.changed()


def _container(spec: Manifest, *, is_sidecar: bool = False) -> Container:
    return Container(name=str(spec.get("name")), spec=spec, is_sidecar=is_sidecar)


def _list(spec: Manifest, kind: str) -> list[Manifest]:
    return spec.get(f"{kind}Containers") or []
