"""Pods by script: a runtime without processes, and the kubelet over it that tests use."""

import asyncio
import itertools
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.kube import Client, requests
from tfyard.kubelet import pod_status
from tfyard.kubelet.kubelet import Kubelet, path_of
from tfyard.kubelet.nodes import Nodes
from tfyard.kubelet.runtime import Report
from tfyard.model import TENSORFLOW_CONTAINER, Phase
from tfyard.model.container_reasons import CRASH_LOOP, STATUS_UNKNOWN
from tfyard.model.exit_codes import SIGKILLED
from tfyard.node.states import ContainerState, Exited, PodState, Running, Waiting, lost
from tfyard.testing.script import Script, Scripts, Sidecar, will_restart
from tfyard.views.pods import PodOnNode

START_TIMEOUT = 30.0
UNTIL_TOLD = Script()
States = Mapping[str, Waiting | Running | Exited]


class ScriptedPod:
    """A pod by script. Its containers start and end together, except sidecars: those that the script names, and
    those among the init containers."""

    def __init__(self, pod: PodOnNode, script: Script, ip: str) -> None:
        self.pod, self.script, self.ip = pod, script, ip
        self.created = self.started = datetime.now(UTC)
        self.restarts = 0
        self.last: Mapping[str, Exited] = {}
        self.exited: dict[str, Exited] = {}
        """Ends of the containers that have ended for good."""
        self.exit: asyncio.Future[int] | None = None
        """Exit code of the current run, if there is one."""
        self.has_begun = self.is_backing_off = False
        names = [container.name for container in pod.spec.containers]
        self.main = TENSORFLOW_CONTAINER if TENSORFLOW_CONTAINER in names else names[0]
        self.native_sidecars = [each.name for each in pod.spec.init_containers if each.is_sidecar]
        self.ordinary_sidecars = [name for name in names if name in script.sidecars]
        self._together = [name for name in names if name not in script.sidecars]

    @property
    def has_sidecars(self) -> bool:
        return bool(self.native_sidecars or self.ordinary_sidecars)

    def waiting(self, reason: str) -> PodState:
        """State of a pod that does not run, or not again: images are pulled, or a crash loop backs off."""
        state = Waiting(reason, self.script.message or f"scripted: {reason}")
        return self._state("Running" if self.restarts else "Pending", dict.fromkeys(self._names, state))

    def running(self, is_ready: bool) -> PodState:
        """State of a pod that runs, or only its sidecars: containers that have ended for good stay so."""
        current: States = {**dict.fromkeys(self._names, Running(self.started)), **self.exited}
        return self._state("Running", current, is_ready)

    def ended(self, code: int, reason: str = "") -> PodState:
        """End the containers that still run with this code. As in a kubelet, native sidecars cannot fail."""
        self.exited = {**self.exits(self._names, code, reason), **self.exited}
        is_failed = any(self.exited[each.name].code for each in self.pod.spec.containers)
        return self._state("Failed" if is_failed else "Succeeded", self.exited)

    def never_restarted(self) -> PodState:
        """End the pod during a back-off. If it is deleted, its container keeps its last end; at a deadline, the
        next run, for which a kubelet still waits, is reported as lost."""
        if self.pod.metadata.deletion_timestamp is None:
            return self.ended(SIGKILLED, STATUS_UNKNOWN)
        self.exited, self.last = {**self.last}, {}
        return self.ended(0)

    def reboot(self) -> None:
        """Lose the containers that ran on the node, and run them again if the policy of the pod says so."""
        ended = {name: lost(self.started) for name in self._names if name not in self.exited}
        if not will_restart(self.pod, lost(self.started).code) or self.main in self.exited:
            self.exited = {**ended, **self.exited}
            return
        self.last = self.last if self.is_backing_off else ended
        self.is_backing_off, self.started, self.restarts = False, datetime.now(UTC), self.restarts + 1

    def init_failed(self) -> PodState:
        """Final state of a pod with restartPolicy Never whose first init container failed."""
        failed = ContainerState(self._exited(self.script.init_exit_code))
        return self._pod_state("Failed", {self.pod.spec.init_containers[0].name: failed})

    def rejected(self) -> PodState:
        """Final state of a pod that the kubelet did not admit: no container was ever started."""
        message = f"Pod was rejected: scripted: {self.script.rejected}"
        return self._pod_state("Failed", {}, self.script.rejected, message)

    def run_ended(self, code: int, reason: str = "") -> dict[str, Exited]:
        """Ends of a run of the main container, and of those that go with it."""
        return self.exits(self._together, code, reason)

    def exits(self, names: list[str], code: int, reason: str = "") -> dict[str, Exited]:
        return {name: self._exited(self._code(name, code), reason) for name in names}

    @property
    def _names(self) -> list[str]:
        return [*self._together, *self.ordinary_sidecars, *self.native_sidecars]

    def _code(self, name: str, code: int) -> int:
        """Exit code of a container: only the main one has the code, unless all are killed."""
        if name == self.main or code == SIGKILLED:
            return code
        return 0 if name in self._together else self._sidecar(name).exit_code

    def _sidecar(self, name: str) -> Sidecar:
        return self.script.sidecars.get(name, Sidecar())

    def _exited(self, code: int, reason: str = "") -> Exited:
        message = self.script.message if code else ""
        return Exited(code, self.started, datetime.now(UTC), reason if code else "", message)

    def _state(self, phase: Phase, current: States, is_ready: bool = False) -> PodState:
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
        self, phase: Phase, containers: Mapping[str, ContainerState], reason: str = "", message: str = ""
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


class ScriptedRuntime:
    def __init__(self, script: Scripts) -> None:
        self._script = script if callable(script) else lambda _: script
        self._addresses = itertools.count(2)
        self.pods: dict[str, ScriptedPod] = {}
        """Pods by uid."""

    async def run(self, pod: PodOnNode, report: Report) -> None:
        known = self.pods.get(pod.metadata.uid)
        if known is not None and known.has_begun:
            await self._go_on(known, report)
            return
        scripted = self.pods[pod.metadata.uid] = self._begin(pod)
        script = scripted.script
        if script.rejected:
            await report(scripted.rejected())
            return
        await asyncio.sleep(script.start_after)
        scripted.started = datetime.now(UTC)
        if script.waiting:
            await report(scripted.waiting(script.waiting))
        elif pod.spec.init_containers and script.init_exit_code:
            await report(scripted.init_failed())
        else:
            await self._run_until_final(scripted, report)

    async def _go_on(self, scripted: ScriptedPod, report: Report) -> None:
        """Continue a pod after a reboot of its node."""
        scripted.reboot()
        if scripted.main in scripted.exited:
            await report(scripted.ended(0))
        else:
            await self._run_until_final(scripted, report)

    async def update(self, pod: PodOnNode) -> None:
        """Do nothing: scripts know no added containers."""

    async def stop(self, pod: PodOnNode, grace: float) -> PodState:
        """Stop a pod; a container that has ended by itself keeps its end."""
        scripted = self.pods.pop(pod.metadata.uid, None) or self._begin(pod)
        script = scripted.script
        if scripted.main in scripted.exited:
            return scripted.ended(0)
        if scripted.is_backing_off:
            scripted.pod = pod
            return scripted.never_restarted()
        await asyncio.sleep(min(script.stop_after, grace))
        is_killed = not grace or script.stop_after > grace
        return scripted.ended(SIGKILLED if is_killed else script.stop_exit_code)

    async def forget(self, pod: PodOnNode) -> None:
        self.pods.pop(pod.metadata.uid, None)

    def _begin(self, pod: PodOnNode) -> ScriptedPod:
        number = next(self._addresses)
        ip = f"10.{1 + (number >> 16) % 250}.{(number >> 8) % 256}.{number % 256}"
        return ScriptedPod(pod, self._script(pod), ip)

    async def _run_until_final(self, scripted: ScriptedPod, report: Report) -> None:
        """Run a pod with the restarts in place, which are the kubelet's, not the controller's."""
        script = scripted.script
        while True:
            code = await self._run_once(scripted, report)
            exits = scripted.exited = scripted.run_ended(code, script.exit_reason)
            if script.phase_lag:
                await report(scripted.running(is_ready=False))
                await asyncio.sleep(script.phase_lag)
            if not will_restart(scripted.pod, code):
                await self._end_sidecars(scripted, report)
                await report(scripted.ended(0))
                return
            scripted.last, scripted.exited = exits, {}
            if script.restart_after and scripted.restarts:
                scripted.is_backing_off = True
                await report(scripted.waiting(CRASH_LOOP))
                await asyncio.sleep(script.restart_after)
                scripted.is_backing_off = False
            scripted.started = datetime.now(UTC)
            scripted.restarts += 1

    async def _end_sidecars(self, scripted: ScriptedPod, report: Report) -> None:
        """Wait for ordinary sidecars; native ones are stopped when all others have ended."""
        if not scripted.has_sidecars:
            return
        await report(scripted.running(is_ready=False))
        lengths = [scripted.script.sidecars[name].run_on for name in scripted.ordinary_sidecars]
        if None in lengths:
            await asyncio.Event().wait()
        await asyncio.sleep(max((seconds for seconds in lengths if seconds), default=0.0))

    async def _run_once(self, scripted: ScriptedPod, report: Report) -> int:
        script = scripted.script
        remaining = math.inf if script.run_for is None else script.run_for
        scripted.has_begun = True
        await report(scripted.running(is_ready=not script.ready_after))
        exit = scripted.exit = asyncio.get_running_loop().create_future()
        try:
            if 0 < script.ready_after < remaining and not await _is_done(exit, script.ready_after):
                remaining -= script.ready_after
                await report(scripted.running(is_ready=True))
            is_finished = await _is_done(exit, remaining)
            return exit.result() if is_finished else script.exit_code(scripted.restarts)
        finally:
            scripted.exit = None


async def _is_done(future: "asyncio.Future[int]", seconds: float) -> bool:
    await asyncio.wait([future], timeout=None if seconds == math.inf else seconds)
    return future.done()


class ScriptedKubelet(Kubelet):
    """`async with ScriptedKubelet(client, script, namespace)`: pods run by `script` until the block ends.

    `script` is one Script for all pods, or a function from Pod to Script. `schedule=False` leaves binding to
    a real scheduler. Tests name pods as `name`, or as `namespace/name` if the kubelet serves all namespaces.
    """

    def __init__(
        self,
        client: Client,
        script: Scripts = UNTIL_TOLD,
        namespace: str = "",
        nodes: int = 1,
        schedule: bool = True,
    ) -> None:
        self._scripted = ScriptedRuntime(script)
        names = [f"{namespace or 'test'}-node-{number}" for number in range(nodes)]
        super().__init__(client, self._scripted, Nodes(client, names), namespace, schedule)

    async def finish(self, name: str, exit_code: int = 0) -> None:
        """End the current run of a pod that runs (or is about to) with this exit code."""
        (await self._current_run(name)).set_result(exit_code)

    async def evict(
        self,
        name: str,
        message: str = "The node was low on resource: memory.",
        *,
        own_fault: bool = False,
        exit_code: int = SIGKILLED,
    ) -> None:
        """Fail a pod with reason Evicted, as under node pressure; its object stays. `own_fault`: without
        DisruptionTarget, as a pod that went over its limits of storage."""
        worker = self.workers[self._key(name)]
        worker.cancel()
        scripted = self._scripted.pods[worker.pod.metadata.uid]
        state = replace(scripted.ended(exit_code), phase="Failed", reason="Evicted", message=message)
        mark = pod_status.disruption("TerminationByKubelet", message, state.changed)
        await self.report(worker.pod, pod_status.patch(worker.pod, state, *([] if own_fault else [mark])))

    async def preempt(self, name: str) -> None:
        """Mark a pod, then delete it with the usual grace, as a scheduler does for a pod of higher priority."""
        pod = self.workers[self._key(name)].pod
        mark = pod_status.disruption("PreemptionByScheduler", "preempted by a pod", datetime.now(UTC))
        await self.report(pod, {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [mark]}})
        await self.write(requests.delete(path_of(pod), uid=pod.metadata.uid))

    async def lose_node(self, node: str) -> None:
        """Lose a machine: no heartbeat, no status, no deletion; its pods stay as they were last seen."""
        self.nodes.lost.add(node)
        for worker in self.workers.values():
            if worker.pod.spec.node_name == node:
                worker.cancel()
        await self.nodes.report(node, "Unknown", "NodeStatusUnknown")

    async def find_node(self, node: str) -> None:
        """Bring a lost machine back, rebooted: its containers run again if their pod's policy says so."""
        self.nodes.lost.discard(node)
        await self.nodes.report(node, "True", "KubeletReady")
        for worker in list(self.workers.values()):
            if worker.pod.spec.node_name == node:
                self.workers.pop(worker.pod.key)
                self.sync(worker.pod)

    async def _current_run(self, name: str) -> "asyncio.Future[int]":
        """Wait for the current run: the pod may be about to start."""
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            worker = self.workers.get(self._key(name))
            scripted = self._scripted.pods.get(worker.pod.metadata.uid) if worker else None
            if scripted is not None and scripted.exit is not None and not scripted.exit.done():
                return scripted.exit
            await asyncio.sleep(0.02)
        raise AssertionError(f"pod {name} is not running")

    def _key(self, name: str) -> str:
        return name if "/" in name else f"{self.namespace}/{name}"
