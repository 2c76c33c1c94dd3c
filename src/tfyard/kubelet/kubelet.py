"""The API half of a kubelet: takes the pods of its nodes from the apiserver to a runtime, and their states back.

It does what kubelets do and nothing else: watch, status patches, deletion with grace 0. Where no scheduler runs,
it also binds pods to its nodes. Each pod has a task of its own; all share one client, so 2,000 pods cost what
their writes cost.
"""

import asyncio
import itertools
import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from msgspec.structs import replace

from tfyard.kube import (
    Changed,
    Client,
    Conflict,
    Kind,
    NotFound,
    Patch,
    Refused,
    Removed,
    Request,
    Snapshot,
    requests,
    watch,
)
from tfyard.kubelet import patience, pod_status
from tfyard.kubelet.nodes import Nodes
from tfyard.kubelet.runtime import Runtime
from tfyard.node.states import PodState
from tfyard.views.pods import PodOnNode

log = logging.getLogger(__name__)

KIND = Kind(PodOnNode)
EXPIRED = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


class PodWorker:
    """Work of the kubelet for one pod."""

    def __init__(self, pod: PodOnNode) -> None:
        self.pod = pod
        began = pod.status.start_time
        age = (datetime.now(UTC) - began).total_seconds() if began else 0.0
        self.started = time.monotonic() - max(age, 0.0)
        self.running: asyncio.Task[None] | None = None
        self.deadline: int | None = None
        self.grace: int | None = None
        """Seconds that the deletion of the pod gives it; None: it is not being stopped."""

    def cancel(self) -> None:
        if self.running is not None:
            self.running.cancel()


class Kubelet:
    """`async with Kubelet(client, runtime, nodes)`: runs the pods of these nodes until the block ends.

    `namespace`: only the pods in it, else all. `schedule`: bind pods that have no node yet, as a scheduler would.
    """

    def __init__(
        self, client: Client, runtime: Runtime, nodes: Nodes, namespace: str = "", schedule: bool = False
    ) -> None:
        self.client, self.runtime, self.nodes = client, runtime, nodes
        self.namespace, self._schedule = namespace, schedule
        self.workers: dict[str, PodWorker] = {}
        self._turns = itertools.cycle(nodes.names)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        await self.nodes.register()
        self._spawn(self.nodes.heartbeat())
        self._spawn(self._watch())
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

    async def report(self, pod: PodOnNode, patch: dict[str, Any]) -> None:
        """Patch the status of a pod. A refusal is logged, because it concerns this pod, and not the node."""
        try:
            await self.write(requests.patch(path_of(pod, "status"), patch, Patch.STRATEGIC))
        except Refused as refusal:
            log.error("the status of the pod %s is refused: %s", pod.key, refusal)

    async def write(self, request: Request) -> None:
        """NotFound and Conflict mean that the pod is gone, or bound by another scheduler: the watch shows what to
        do then."""
        with suppress(NotFound, Conflict):
            await patience.send(self.client, request)

    # --- pods come and go

    async def _watch(self) -> None:
        async for change in watch(self.client, KIND, requests.PODS.path(self.namespace)):
            if isinstance(change, Snapshot):
                present = {pod.key for pod in change.items}
                for key in [key for key in self.workers if key not in present]:
                    self._remove(key)
                for pod in change.items:
                    self.sync(pod)
            elif isinstance(change, Changed):
                self.sync(change.object)
            elif isinstance(change, Removed):
                self._remove(change.object.key)

    def sync(self, pod: PodOnNode) -> None:
        """Do what this version of the pod asks for."""
        worker = self.workers.get(pod.key)
        if worker is not None and worker.pod.metadata.uid != pod.metadata.uid:
            self._remove(pod.key)
            worker = None
        if worker is not None:
            if len(pod.spec.ephemeral_containers) > len(worker.pod.spec.ephemeral_containers):
                self._spawn(self.runtime.update(pod))
            worker.pod = pod
        if not self._is_ours(pod):
            return
        if worker is None:
            worker = self.workers[pod.key] = PodWorker(pod)
            if not pod.is_over and not pod.metadata.deletion_timestamp:
                worker.running = self._spawn(self._run(pod))
        if pod.spec.active_deadline_seconds != worker.deadline:
            worker.deadline = pod.spec.active_deadline_seconds
            self._spawn(self._expire(worker))
        if pod.metadata.deletion_timestamp:
            self._delete(worker)

    def _delete(self, worker: PodWorker) -> None:
        """Stop a pod that is deleted; a second deletion may give it less time than the first."""
        grace, before = worker.pod.metadata.deletion_grace_period_seconds or 0, worker.grace
        if before is None:
            worker.grace = grace
            worker.cancel()
            self._spawn(self._stop(worker.pod))
        elif grace < before:
            worker.grace = grace
            self._spawn(self.runtime.stop(worker.pod, grace))

    def _is_ours(self, pod: PodOnNode) -> bool:
        node = pod.spec.node_name
        if not node:
            return self._schedule and not pod.spec.scheduling_gates
        return node in self.nodes.names and node not in self.nodes.lost

    def _remove(self, key: str) -> None:
        """Stop a pod whose object is gone; nothing can be reported any more."""
        worker = self.workers.pop(key, None)
        if worker is not None:
            worker.cancel()
            self._spawn(self._forget(worker))

    async def _forget(self, worker: PodWorker) -> None:
        await self.runtime.stop(worker.pod, 0)
        await self.runtime.forget(worker.pod)

    async def _run(self, pod: PodOnNode) -> None:
        if not pod.spec.node_name:
            await self._bind(pod)
        await self.runtime.run(pod, partial(self._report_state, pod))

    async def _stop(self, pod: PodOnNode) -> None:
        """Stop a pod, and report its final state before its object is deleted, as kubelets do since 1.27."""
        grace = 0 if pod.is_over else pod.metadata.deletion_grace_period_seconds or 0
        state = await self.runtime.stop(pod, grace)
        if not pod.is_over:
            await self._report_state(pod, state)
        await self.write(requests.delete(path_of(pod), uid=pod.metadata.uid, grace=0))

    async def _expire(self, worker: PodWorker) -> None:
        """End a pod at its deadline, unless it has ended or got another deadline meanwhile."""
        deadline = worker.deadline
        if deadline is None:
            return
        await asyncio.sleep(worker.started + deadline - time.monotonic())
        if (
            worker.running is None
            or worker.running.done()
            or worker.grace is not None
            or worker.deadline != deadline
        ):
            return
        worker.cancel()
        state = await self.runtime.stop(worker.pod, worker.pod.spec.termination_grace_period_seconds)
        await self._report_state(worker.pod, replace(state, phase="Failed", **EXPIRED))

    async def _report_state(self, pod: PodOnNode, state: PodState) -> None:
        """Report the state of a pod, in the newest version that the kubelet knows."""
        worker = self.workers.get(pod.key)
        if worker is not None and worker.pod.metadata.uid == pod.metadata.uid:
            pod = worker.pod
        await self.report(pod, pod_status.patch(pod, state))

    async def _bind(self, pod: PodOnNode) -> None:
        node = next(name for name in self._turns if name not in self.nodes.lost)
        metadata = {"name": pod.metadata.name, "uid": pod.metadata.uid}
        binding = {"metadata": metadata, "target": {"kind": "Node", "name": node}}
        await self.write(requests.create(path_of(pod, "binding"), binding))

    # --- its own tasks

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        """A kubelet that fails ends the block that it serves at once, instead of letting it wait for nothing."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()
            if self._owner is not None:
                self._owner.cancel()


def path_of(pod: PodOnNode, subresource: str = "") -> str:
    return requests.PODS.path(pod.metadata.namespace, pod.metadata.name, subresource)
