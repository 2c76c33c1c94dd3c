"""One pod in the middle of its script: the state of each of its containers."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from tfyard.kubelet.runtime import ContainerState, Exited, Pod, PodState, Running, Waiting
from tfyard.kubelet.script import Script, Sidecar
from tfyard.model import TENSORFLOW_CONTAINER

SIGKILLED = 137
States = Mapping[str, Waiting | Running | Exited]


class ScriptedPod:
    """Its containers start and end together, except sidecars: those that the script names, and those among the
    init containers."""

    def __init__(self, pod: Pod, script: Script, ip: str) -> None:
        self.pod, self.script, self.ip = pod, script, ip
        self.created = self.started = datetime.now(UTC)
        self.restarts = 0
        self.last: Mapping[str, Exited] = {}
        self.exited: dict[str, Exited] = {}
        """The containers that have ended for good."""
        self.exit: asyncio.Future[int] | None = None
        """The exit code of the current run, if there is one."""
        names = [container.name for container in pod.spec.containers]
        self.main = TENSORFLOW_CONTAINER if TENSORFLOW_CONTAINER in names else names[0]
        self.native_sidecars = [each.name for each in pod.spec.init_containers if each.is_sidecar]
        self.ordinary_sidecars = [name for name in names if name in script.sidecars]
        self._together = [name for name in names if name not in script.sidecars]

    @property
    def has_sidecars(self) -> bool:
        return bool(self.native_sidecars or self.ordinary_sidecars)

    def waiting(self, reason: str) -> PodState:
        """Not (or not again) running: images are pulled, or a crash loop backs off."""
        state = Waiting(reason, f"scripted: {reason}")
        return self._state("Running" if self.restarts else "Pending", dict.fromkeys(self._names, state))

    def running(self, is_ready: bool) -> PodState:
        """Also of sidecars alone: whatever has ended for good stays as it is."""
        current: States = {**dict.fromkeys(self._names, Running(self.started)), **self.exited}
        return self._state("Running", current, is_ready)

    def ended(self, code: int, reason: str = "") -> PodState:
        """All that has not ended yet ends with this code; as a kubelet counts, native sidecars cannot fail."""
        self.exited = {**self.exits(self._names, code, reason), **self.exited}
        is_failed = any(self.exited[each.name].code for each in self.pod.spec.containers)
        return self._state("Failed" if is_failed else "Succeeded", self.exited)

    def init_failed(self) -> PodState:
        """The first init container failed, and restartPolicy Never makes that the end of the pod."""
        failed = ContainerState(self._exited(self.script.init_exit_code))
        return self._pod_state("Failed", {self.pod.spec.init_containers[0].name: failed})

    def rejected(self) -> PodState:
        """Not admitted by the kubelet: no container of it was ever started."""
        said = f"Pod was rejected: scripted: {self.script.rejected}"
        return self._pod_state("Failed", {}, self.script.rejected, said)

    def run_ended(self, code: int, reason: str = "") -> dict[str, Exited]:
        """How a run of the main container, and of those that go with it, ended."""
        return self.exits(self._together, code, reason)

    def exits(self, names: list[str], code: int, reason: str = "") -> dict[str, Exited]:
        return {name: self._exited(self._code(name, code), reason) for name in names}

    @property
    def _names(self) -> list[str]:
        return [*self._together, *self.ordinary_sidecars, *self.native_sidecars]

    def _code(self, name: str, code: int) -> int:
        """The main container alone has the code, unless all are killed."""
        if name == self.main or code == SIGKILLED:
            return code
        return 0 if name in self._together else self._sidecar(name).exit_code

    def _sidecar(self, name: str) -> Sidecar:
        return self.script.sidecars.get(name, Sidecar())

    def _exited(self, code: int, reason: str = "") -> Exited:
        return Exited(code, self.started, datetime.now(UTC), reason if code else "")

    def _state(self, phase: str, current: States, is_ready: bool = False) -> PodState:
        containers = {
            name: ContainerState(state, self._restarts(name), is_ready, self.last.get(name))
            for name, state in current.items()
        }
        done = ContainerState(Exited(0, self.created, self.created), is_ready=True)
        inits = {each.name: done for each in self.pod.spec.init_containers}
        return self._pod_state(phase, {**inits, **containers})

    def _restarts(self, name: str) -> int:
        return self.restarts if name in self._together else self._sidecar(name).restarts

    def _pod_state(
        self, phase: str, containers: Mapping[str, ContainerState], reason: str = "", message: str = ""
    ) -> PodState:
        return PodState(
            phase=phase,
            ip=self.ip,
            started=self.created,
            changed=datetime.now(UTC),
            containers=containers,
            reason=reason,
            message=message,
        )
