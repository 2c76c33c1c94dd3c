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
from tfyard.kubelet.runtime import ContainerState, Exited, Pod, PodState, Report, Running, Waiting
from tfyard.kubelet.script import Script, Scripts, will_restart
from tfyard.model import TENSORFLOW_CONTAINER

START_TIMEOUT = 30.0
SIGKILLED = 137
UNTIL_TOLD = Script()


class ScriptedPod:
    """A pod in the middle of its script. Its containers start and end together."""

    def __init__(self, pod: Pod, script: Script, ip: str) -> None:
        self.pod, self.script, self.ip = pod, script, ip
        self.created = self.started = datetime.now(UTC)
        self.restarts = 0
        self.last: Mapping[str, Exited] = {}
        self.exit: asyncio.Future[int] | None = None
        """The exit code of the current run, if there is one."""

    def waiting(self, reason: str) -> PodState:
        """Not (or not again) running: images are pulled, or a crash loop backs off."""
        state = Waiting(reason, f"scripted: {reason}")
        return self._state("Running" if self.restarts else "Pending", dict.fromkeys(self._names, state))

    def running(self, is_ready: bool) -> PodState:
        return self._state("Running", dict.fromkeys(self._names, Running(self.started)), is_ready)

    def ended(self, exits: Mapping[str, Exited]) -> PodState:
        is_failed = any(exit.code for exit in exits.values())
        return self._state("Failed" if is_failed else "Succeeded", exits)

    def init_failed(self) -> PodState:
        """The first init container failed, and restartPolicy Never makes that the end of the pod."""
        failed = ContainerState(self._exited(self.script.init_exit_code))
        state = self._state("Failed", {})
        return replace(state, containers={self.pod.spec.init_containers[0].name: failed})

    def exits(self, code: int, reason: str = "") -> dict[str, Exited]:
        """Of every container; the main one alone has the code, unless all are killed."""
        main = TENSORFLOW_CONTAINER if TENSORFLOW_CONTAINER in self._names else self._names[0]
        codes = {name: code if name == main or code == SIGKILLED else 0 for name in self._names}
        return {name: self._exited(code, reason) for name, code in codes.items()}

    @property
    def _names(self) -> list[str]:
        return [container.name for container in self.pod.spec.containers]

    def _exited(self, code: int, reason: str = "") -> Exited:
        return Exited(code, self.started, datetime.now(UTC), reason if code else "")

    def _state(
        self, phase: str, current: Mapping[str, Waiting | Running | Exited], is_ready: bool = False
    ) -> PodState:
        init = ContainerState(Exited(0, self.created, self.created), is_ready=True)
        containers = {
            name: ContainerState(state, self.restarts, is_ready, self.last.get(name))
            for name, state in current.items()
        }
        return PodState(
            phase=phase,
            ip=self.ip,
            started=self.created,
            changed=datetime.now(UTC),
            containers={**{each.name: init for each in self.pod.spec.init_containers}, **containers},
        )


class ScriptedRuntime:
    def __init__(self, script: Scripts) -> None:
        self._script = script if callable(script) else lambda _: script
        self._addresses = itertools.count(2)
        self.pods: dict[str, ScriptedPod] = {}
        """By uid."""

    async def run(self, pod: Pod, report: Report) -> None:
        scripted = self.pods[pod.metadata.uid] = self._begin(pod)
        script = scripted.script
        await asyncio.sleep(script.start_after)
        scripted.started = datetime.now(UTC)
        if script.waiting:
            await report(scripted.waiting(script.waiting))
        elif pod.spec.init_containers and script.init_exit_code:
            await report(scripted.init_failed())
        else:
            await self._run_until_final(scripted, report)

    async def stop(self, pod: Pod, grace: float) -> PodState:
        scripted = self.pods.pop(pod.metadata.uid, None) or self._begin(pod)
        if not grace:
            return scripted.ended(scripted.exits(SIGKILLED))
        await asyncio.sleep(scripted.script.stop_after)
        return scripted.ended(scripted.exits(scripted.script.stop_exit_code))

    def _begin(self, pod: Pod) -> ScriptedPod:
        number = next(self._addresses)
        ip = f"10.{1 + (number >> 16) % 250}.{(number >> 8) % 256}.{number % 256}"
        return ScriptedPod(pod, self._script(pod), ip)

    async def _run_until_final(self, scripted: ScriptedPod, report: Report) -> None:
        """Restarts in place are the kubelet's, not the controller's."""
        script = scripted.script
        while True:
            code = await self._run_once(scripted, report)
            exits = scripted.exits(code, script.exit_reason)
            if not will_restart(scripted.pod, code):
                await report(scripted.ended(exits))
                return
            scripted.last = exits
            if script.restart_after and scripted.restarts:
                await report(scripted.waiting("CrashLoopBackOff"))
                await asyncio.sleep(script.restart_after)
            scripted.started = datetime.now(UTC)
            scripted.restarts += 1

    async def _run_once(self, scripted: ScriptedPod, report: Report) -> int:
        script = scripted.script
        remaining = math.inf if script.run_for is None else script.run_for
        await report(scripted.running(is_ready=not script.ready_after))
        exit = scripted.exit = asyncio.get_running_loop().create_future()
        try:
            if 0 < script.ready_after < remaining and not await _is_done(exit, script.ready_after):
                remaining -= script.ready_after
                await report(scripted.running(is_ready=True))
            is_told = await _is_done(exit, remaining)
            return exit.result() if is_told else script.exit_code(scripted.restarts)
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
        names = [f"{namespace or 'box'}-node-{number}" for number in range(nodes)]
        super().__init__(client, self._scripted, Nodes(client, names), namespace, schedule)

    async def finish(self, name: str, exit_code: int = 0) -> None:
        """End the current run of a pod that runs (or is about to) with this exit code."""
        (await self._current_run(name)).set_result(exit_code)

    async def evict(self, name: str, message: str = "The node was low on resource: memory.") -> None:
        """As under node pressure: Failed with reason Evicted; the object stays."""
        worker = self.workers[self._key(name)]
        worker.cancel()
        scripted = self._scripted.pods[worker.pod.metadata.uid]
        state = scripted.ended(scripted.exits(SIGKILLED))
        mark = pod_status.disruption("TerminationByKubelet", message, state.changed)
        evicted = replace(state, reason="Evicted", message=message)
        await self.report(worker.pod, pod_status.patch(worker.pod, evicted, mark))

    async def preempt(self, name: str) -> None:
        """As a scheduler does for a pod of higher priority: mark, then delete with the usual grace."""
        pod = self.workers[self._key(name)].pod
        mark = pod_status.disruption("PreemptionByScheduler", "preempted by a pod", datetime.now(UTC))
        await self.report(pod, {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [mark]}})
        await self.write(requests.delete(path_of(pod), uid=pod.metadata.uid))

    async def lose_node(self, node: str) -> None:
        """The machine is gone: no heartbeat, no status, no deletion; its pods stay as they were last seen."""
        self.nodes.lost.add(node)
        for worker in self.workers.values():
            if worker.pod.spec.node_name == node:
                worker.cancel()
        await self.nodes.report(node, "Unknown", "NodeStatusUnknown")

    async def find_node(self, node: str) -> None:
        """It is back, rebooted: what ran on it starts anew."""
        self.nodes.lost.discard(node)
        await self.nodes.report(node, "True", "KubeletReady")
        for worker in list(self.workers.values()):
            if worker.pod.spec.node_name == node:
                self.workers.pop(worker.pod.key)
                self.sync(worker.pod)

    async def _current_run(self, name: str) -> "asyncio.Future[int]":
        """Once there is one: the pod may be about to start."""
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
