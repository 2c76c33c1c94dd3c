"""Pods as processes of this machine: the runtime of a real node."""

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tfyard.kube import Client, Kind, NotFound, Transient, list_all, requests
from tfyard.kubelet.container import PodContainer
from tfyard.kubelet.engine import Engine
from tfyard.kubelet.events import Events
from tfyard.kubelet.pod import ProcessPod
from tfyard.kubelet.runtime import (
    Attached,
    Console,
    ContainerState,
    Exited,
    LogSource,
    NoSuchContainer,
    Pod,
    PodState,
    Report,
    Waiting,
)
from tfyard.kubelet.surroundings import LOOPBACK, Networks, Options, Surroundings
from tfyard.kubelet.volumes import folder_name
from tfyard.model import Manifest
from tfyard.model.exit_codes import SIGKILLED
from tfyard.node import volumes

log = logging.getLogger(__name__)

RETRY = 1.0
UNSEEN = "The container could not be located when the pod was terminated"


class ProcessRuntime:
    """`async with ProcessRuntime(client, folder, base_env, networks)`: leaving ends every process.

    `folder` holds logs, scratch space and shares, and outlives the runtime; `base_env` is what every process has
    in its environment. Without `networks`, pods share the network of this machine."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        base_env: Mapping[str, str],
        networks: Networks | None = None,
        options: Options | None = None,
    ) -> None:
        self.client, self.folder = client, folder
        self._options = options or Options()
        self._around = Surroundings(
            client=client,
            engine=Engine(folder),
            events=Events(client, {"component": "kubelet", "host": self._options.node}),
            folder=folder,
            base_env=base_env,
            networks=networks,
            options=self._options,
        )
        self.engine = self._around.engine
        self.pods: dict[str, ProcessPod] = {}
        """By uid."""

    async def __aenter__(self) -> Self:
        (self.folder / "pods").mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._around.events)
            await stack.enter_async_context(self._around.engine)
            await self._remove_leftovers()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        lives = [pod.life for pod in self.pods.values() if pod.life is not None]
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        await self._stack.aclose()

    async def _remove_leftovers(self) -> None:
        """Of pods that were deleted while no kubelet ran."""
        listing = await list_all(self.client, Kind(Pod), requests.PODS.path(), {})
        known = {pod.metadata.uid for pod in listing.items}
        for folder in (self.folder / "pods").iterdir():
            if folder.name.rpartition("_")[2] not in known:
                await self._remove(folder)

    async def _remove(self, folder: Path) -> None:
        """What cannot be removed stays, and is tried again at the next start: it must not cost the node."""
        try:
            if folder.exists():
                await asyncio.to_thread(volumes.remove, folder)
        except OSError as problem:
            log.warning("%s cannot be removed: %s", folder, problem)

    # Runtime.

    async def run(self, pod: Pod, report: Report) -> None:
        known = self.pods.get(pod.metadata.uid)
        if known is None:
            manifest = await self._manifest(pod)
            if manifest is None:
                return
            known = self.pods[pod.metadata.uid] = ProcessPod(manifest, self._around)
            status = manifest.get("status") or {}
            statuses = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
            if not known.adopt(statuses):
                await report(known.state())
                return
        await known.run(report)

    async def update(self, pod: Pod) -> None:
        known, manifest = self.pods.get(pod.metadata.uid), await self._manifest(pod)
        if known is not None and manifest is not None:
            added = manifest["spec"].get("ephemeralContainers") or []
            statuses = manifest["status"].get("ephemeralContainerStatuses") or []
            begun = {
                each["name"] for each in statuses if "waiting" not in (each.get("state") or {"waiting": {}})
            }
            await asyncio.gather(*(known.debug(each) for each in added if each["name"] not in begun))

    async def stop(self, pod: Pod, grace: float) -> PodState:
        known = self.pods.get(pod.metadata.uid)
        return self._unseen(pod) if known is None else await known.stop(grace)

    async def forget(self, pod: Pod) -> None:
        meta = pod.metadata
        known = self.pods.pop(meta.uid, None)
        if known is not None:
            await known.stop(0)
        self._around.events.forget(meta.uid)
        folder = self._around.pod_folder(meta.namespace, meta.name, meta.uid)
        await self._remove(folder)

    async def _manifest(self, pod: Pod) -> Manifest | None:
        """All of it; None if this very pod is gone."""
        path = requests.PODS.path(pod.metadata.namespace, pod.metadata.name)
        while True:
            try:
                found: Any = await self.client.send(requests.get(path))
            except NotFound:
                return None
            except Transient:
                await asyncio.sleep(RETRY)
                continue
            return found if found["metadata"]["uid"] == pod.metadata.uid else None

    def _unseen(self, pod: Pod) -> PodState:
        now = datetime.now(UTC)
        lost = ContainerState(Exited(SIGKILLED, now, now, "ContainerStatusUnknown", UNSEEN))
        names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
        return PodState(
            phase="Failed",
            ip="",
            host_ip=self._options.host_ip,
            started=now,
            changed=now,
            containers=dict.fromkeys(names, lost),
        )

    # Containers: what the kubelet's server asks for.

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool) -> LogSource:
        known = self._find(namespace, pod)
        folder = self._folder_of(namespace, pod) / "logs" / container
        if known is not None and container not in known.every:
            raise NoSuchContainer(f"container {container} is not valid for pod {pod}")
        runs = sorted(int(log.stem) for log in folder.glob("*.log"))
        current = known.every[container] if known else None
        is_backing_off = current is not None and isinstance(current.current, Waiting)
        chosen = runs[:-1] if previous and not is_backing_off else runs
        if not chosen and previous:
            raise NoSuchContainer(f'previous terminated container "{container}" in pod "{pod}" not found')
        if not chosen:
            raise NoSuchContainer(_waiting_to_start(current, container, pod))
        log = folder / f"{chosen[-1]}.log"
        return LogSource(log, lambda: current is None or _is_over(current, chosen[-1]))

    async def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool, tty: bool
    ) -> Attached:
        known = self._find(namespace, pod)
        found = known.every.get(container) if known else None
        if found is None:
            raise NoSuchContainer(f'container not found ("{container}")')
        if found.process is None or not found.is_running:
            raise NoSuchContainer(f"container {container} of pod {pod} is not running")
        return await self._around.engine.attach(found.process, argv, stdin=stdin, tty=tty)

    def console(self, namespace: str, pod: str, container: str) -> Console | None:
        known = self._find(namespace, pod)
        found = known.every.get(container) if known else None
        return found.console if found else None

    async def connect(self, namespace: str, pod: str, port: int) -> socket.socket:
        known = self._find(namespace, pod)
        if known is None:
            raise ConnectionRefusedError(f"pod {namespace}/{pod} does not run on this node")
        if known.network is not None:
            return await asyncio.to_thread(known.network.connect, port)
        return await asyncio.to_thread(socket.create_connection, (LOOPBACK, port))

    def _find(self, namespace: str, name: str) -> ProcessPod | None:
        chosen = [each for each in self.pods.values() if (each.namespace, each.name) == (namespace, name)]
        return chosen[-1] if chosen else None

    def _folder_of(self, namespace: str, name: str) -> Path:
        """Also of a pod that ended before this kubelet was started."""
        known = self._find(namespace, name)
        if known is not None:
            return known.folder
        found = [*(self.folder / "pods").glob(folder_name(namespace, name, "*"))]
        if not found:
            raise NoSuchContainer(f'pod "{name}" not found on this node')
        return max(found, key=lambda folder: folder.stat().st_mtime)


def _waiting_to_start(container: PodContainer | None, name: str, pod: str) -> str:
    current = container.current if container else None
    reason = current.reason if isinstance(current, Waiting) else "ContainerCreating"
    return f'container "{name}" in pod "{pod}" is waiting to start: {reason}'


def _is_over(container: PodContainer, run: int) -> bool:
    return container.restarts > run or not (container.is_running or container.console)
