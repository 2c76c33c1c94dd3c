"""A kubelet by script: takes pods to Running, Succeeded or Failed, and to their graceful end.

It speaks to the API only, and only as kubelets do: watch, status patches, deletion with grace 0. Where no
scheduler runs, it binds pods to its nodes too. Each pod is one task; all of them share one client, so 2,000
pods cost what their writes cost.
"""

import asyncio
import itertools
import time
from typing import Any, Self

from tfyard.kube import (
    Changed,
    Client,
    Conflict,
    Kind,
    NotFound,
    Patch,
    Removed,
    Request,
    Snapshot,
    Transient,
    requests,
    watch,
)
from tfyard.kubelet import pod_status
from tfyard.kubelet.nodes import Nodes, now
from tfyard.kubelet.pod_status import Exit, Run
from tfyard.kubelet.script import Pod, Script, Scripts, will_restart

KIND = Kind(Pod)
RETRY = 0.2
PATIENCE = 30.0
UNTIL_TOLD = Script()


class _Life:
    """One pod on its way: what it is doing, and the hand that tests have in it."""

    def __init__(self, pod: Pod, script: Script, ip: str) -> None:
        self.pod, self.script = pod, script
        self.run = Run(ip, now())
        self.task: asyncio.Task[None] | None = None
        self.exit: asyncio.Future[int] | None = None
        self.ending = False


class ScriptedKubelet:
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
        self._client, self._namespace, self._schedule = client, namespace, schedule
        self._script = script if callable(script) else lambda _: script
        self.nodes = Nodes(client, [f"{namespace or 'box'}-node-{number}" for number in range(nodes)])
        self._turns = itertools.cycle(self.nodes.names)
        self._addresses = itertools.count(2)
        self._lives: dict[str, _Life] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        await self.nodes.register()
        self._spawn(self.nodes.heartbeat())
        self._spawn(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.nodes.unregister()
        if self._failure is not None:
            if self._owner is not None:
                self._owner.uncancel()
            raise self._failure

    # --- what tests may do to pods and nodes

    async def finish(self, name: str, exit_code: int = 0) -> None:
        """End the current run of a pod that runs (or is about to) with this exit code."""
        (await self._running(name)).set_result(exit_code)

    async def evict(self, name: str, message: str = "The node was low on resource: memory.") -> None:
        """As under node pressure: Failed with reason Evicted; the object stays."""
        life = self._end(name)
        end = Exit(pod_status.SIGKILLED, now(), message=message)
        await self._report(life.pod, pod_status.evicted(life.pod, life.run, end))

    async def preempt(self, name: str) -> None:
        """As a scheduler does for a pod of higher priority: mark, then delete with the usual grace."""
        pod = self._lives[self._key(name)].pod
        mark = pod_status.disruption("PreemptionByScheduler", Exit(0, now(), message="preempted by a pod"))
        await self._report(pod, {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [mark]}})
        await self._write(requests.delete(self._path(pod), uid=pod.metadata.uid))

    async def lose_node(self, node: str) -> None:
        """The machine is gone: no heartbeat, no status, no goodbye; its pods stay as they were last seen."""
        self.nodes.lost.add(node)
        for key, life in self._lives.items():
            if life.pod.spec.node_name == node:
                self._end(key)
        await self.nodes.report(node, "Unknown", "NodeStatusUnknown")

    async def find_node(self, node: str) -> None:
        """It is back, rebooted: what ran on it starts anew."""
        self.nodes.lost.discard(node)
        await self.nodes.report(node, "True", "KubeletReady")
        for life in list(self._lives.values()):
            if life.pod.spec.node_name == node:
                self._lives.pop(life.pod.key)
                self._see(life.pod)

    # --- pods come and go

    async def _follow(self) -> None:
        async for change in watch(self._client, KIND, requests.PODS.path(self._namespace)):
            if isinstance(change, Snapshot):
                present = {pod.key for pod in change.items}
                for key in [key for key in self._lives if key not in present]:
                    self._forget(key)
                for pod in change.items:
                    self._see(pod)
            elif isinstance(change, Changed):
                self._see(change.object)
            elif isinstance(change, Removed):
                self._forget(change.object.key)

    def _see(self, pod: Pod) -> None:
        life = self._lives.get(pod.key)
        if life is not None and life.pod.metadata.uid != pod.metadata.uid:
            self._forget(pod.key)
            life = None
        if life is not None:
            life.pod = pod
        if not self._is_ours(pod):
            return
        if life is None:
            life = _Life(pod, self._script(pod), self._next_address())
            self._lives[pod.key] = life
            if not pod.is_finished and not pod.metadata.deletion_timestamp:
                life.task = self._spawn(self._live(life))
        if pod.metadata.deletion_timestamp and not life.ending:
            life.ending = True
            self._end(pod.key)
            self._spawn(self._terminate(life))

    def _is_ours(self, pod: Pod) -> bool:
        node = pod.spec.node_name
        if not node:
            return self._schedule and not pod.spec.scheduling_gates
        return node in self.nodes.names and node not in self.nodes.lost

    def _forget(self, key: str) -> None:
        if key in self._lives:
            self._end(key)
            del self._lives[key]

    def _end(self, name: str) -> _Life:
        life = self._lives[self._key(name)]
        if life.task is not None:
            life.task.cancel()
        return life

    # --- the life of one pod

    async def _live(self, life: _Life) -> None:
        pod, script = life.pod, life.script
        if not pod.spec.node_name:
            await self._bind(pod)
        await asyncio.sleep(script.start_after)
        life.run = Run(life.run.ip, now())
        if script.waiting:
            await self._report(pod, pod_status.waiting(pod, life.run, script.waiting))
            return
        if pod.spec.init_containers and script.init_exit_code:
            end = Exit(script.init_exit_code, now())
            await self._report(pod, pod_status.init_failed(pod, life.run, end))
            return
        await self._run(life)

    async def _run(self, life: _Life) -> None:
        """Run after run until one is final: in-place restarts are the kubelet's, not the controller's."""
        pod, script = life.pod, life.script
        while True:
            end = await self._run_once(life)
            if not will_restart(pod, end.code):
                await self._report(pod, pod_status.finished(pod, life.run, end))
                return
            life.run = Run(life.run.ip, now(), life.run.number + 1, end)
            if script.restart_after:
                await self._report(pod, pod_status.waiting(pod, life.run, "CrashLoopBackOff"))
                await asyncio.sleep(script.restart_after)

    async def _run_once(self, life: _Life) -> Exit:
        pod, script = life.pod, life.script
        await self._report(pod, pod_status.running(pod, life.run, ready=not script.ready_after))
        life.exit = asyncio.get_running_loop().create_future()
        if script.ready_after:
            self._spawn(self._become_ready(life))
        try:
            code = await asyncio.wait_for(life.exit, script.run_for)
        except TimeoutError:
            code = script.exit_code(life.run.number)
        return Exit(code, now(), script.exit_reason)

    async def _become_ready(self, life: _Life) -> None:
        this_run = life.exit
        await asyncio.sleep(life.script.ready_after)
        if life.exit is this_run and this_run is not None and not this_run.done():
            await self._report(life.pod, pod_status.running(life.pod, life.run, ready=True))

    async def _terminate(self, life: _Life) -> None:
        """SIGTERM; then the exit status goes on record, and only then the object goes: so since 1.27."""
        pod = life.pod
        if not pod.is_finished:
            await asyncio.sleep(life.script.stop_after)
            end = Exit(life.script.stop_exit_code, now())
            await self._report(pod, pod_status.finished(pod, life.run, end))
        await self._write(requests.delete(self._path(pod), uid=pod.metadata.uid, grace=0))

    # --- writes

    async def _bind(self, pod: Pod) -> None:
        node = next(name for name in self._turns if name not in self.nodes.lost)
        whom = {"name": pod.metadata.name, "uid": pod.metadata.uid}
        binding = {"metadata": whom, "target": {"kind": "Node", "name": node}}
        await self._write(requests.create(self._path(pod, "binding"), binding))

    async def _report(self, pod: Pod, patch: dict[str, Any]) -> None:
        await self._write(requests.patch(self._path(pod, "status"), patch, Patch.STRATEGIC))

    async def _write(self, request: Request) -> None:
        """Every write of a kubelet may be repeated, so an absent apiserver is waited for. NotFound and
        Conflict mean that the pod is gone or bound by somebody else: the watch tells what to do then."""
        while True:
            try:
                await self._client.send(request)
                return
            except Transient:
                await asyncio.sleep(RETRY)
            except (NotFound, Conflict):
                return

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """A kubelet that breaks ends the block that it serves at once, instead of letting it wait in vain."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()
            if self._owner is not None:
                self._owner.cancel()

    async def _running(self, name: str) -> "asyncio.Future[int]":
        """The current run of a pod, once there is one: its start may still be on its way."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            life = self._lives.get(self._key(name))
            if life is not None and life.exit is not None and not life.exit.done():
                return life.exit
            await asyncio.sleep(0.02)
        raise AssertionError(f"pod {name} is not running")

    def _key(self, name: str) -> str:
        return name if "/" in name else f"{self._namespace}/{name}"

    def _path(self, pod: Pod, subresource: str = "") -> str:
        return requests.PODS.path(pod.metadata.namespace, pod.metadata.name, subresource)

    def _next_address(self) -> str:
        number = next(self._addresses)
        return f"10.{1 + (number >> 16) % 250}.{(number >> 8) % 256}.{number % 256}"
