"""Pods as processes of this machine: the runtime of a real node."""

import asyncio
import logging
import socket
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from tfyard.kube import Client, Kind, NotFound, list_all, requests
from tfyard.kubelet import patience
from tfyard.kubelet.events import Events
from tfyard.kubelet.metrics import RecentUses
from tfyard.kubelet.runtime import Console, ExecProcess, LogSource, NoSuchContainer, Report
from tfyard.kubelet.sources import ApiSources
from tfyard.model import Manifest
from tfyard.model.container_reasons import STATUS_UNKNOWN
from tfyard.model.exit_codes import SIGKILLED
from tfyard.node import volumes
from tfyard.node.container import PodContainer
from tfyard.node.engine import ContainerProcess, Engine
from tfyard.node.log_limits import LogTimes
from tfyard.node.node import Networks, Node, NodeOptions
from tfyard.node.pod import PodLife
from tfyard.node.pod_data import LOOPBACK
from tfyard.node.processes import Exit
from tfyard.node.states import ContainerState, Exited, PodState, Waiting, lost
from tfyard.views.pods import ContainerStateTerminated, ContainerStatus, PodOnNode

log = logging.getLogger(__name__)

UNSEEN = "The container could not be located when the pod was terminated"
LONGEST_NAME = 150


def folder_name(namespace: str, name: str, uid: str) -> str:
    """Folder name of a pod or a claim. Names may have 253 characters; file names 255, with namespace and uid."""
    return f"{namespace}_{name[:LONGEST_NAME]}_{uid}"


class ProcessNodeOptions(NodeOptions, frozen=True, kw_only=True):
    """Settings of a node of a cluster."""

    node: str = "localhost"
    api: tuple[str, int] = (LOOPBACK, 443)
    """Address and port where pods reach the apiserver."""


class OwnedPod:
    """A pod of the API, and the owner of its processes (node.node.Owner), which reports its states."""

    def __init__(self, manifest: Manifest, node: Node, folder: Path, events: Events) -> None:
        self.folder, self._events = folder, events
        self._change = asyncio.Event()
        self.pod = PodLife(manifest, node, self)

    async def run(self, report: Report) -> None:
        """Report each state until the last. If this is cancelled, the pod itself goes on."""
        life, last = self.pod.start(), None
        life.add_done_callback(lambda _: self._change.set())
        while True:
            self._change.clear()
            is_over, state = life.done(), self.pod.state()
            if last is None or replace(state, changed=last.changed) != last:
                last = state
                await report(state)
            if is_over:
                life.result()
                return
            await self._change.wait()

    def adopt(self, statuses: Iterable[ContainerStatus]) -> bool:
        """Continue from the statuses after a restart of the kubelet, when no container of the pod runs any more.
        False if the pod's policy forbids to start lost containers again."""
        pod = self.pod
        started = [each for each in statuses if each.name in pod.all and each.has_started]
        is_over = pod.policy == "Never" and any(each.state.running for each in started)
        for status in started:
            _go_on(pod.all[status.name], status, is_over=is_over)
        if is_over:
            pod.settle()
        return not is_over

    # Called by the pod (Owner).

    def new_log(self, container: str, restarts: int) -> Path:
        """Log of a new run. As in a kubelet, the logs of this run and of the one before are kept."""
        folder = self.folder / "logs" / container
        folder.mkdir(parents=True, exist_ok=True)
        old = LogTimes(folder / f"{restarts - 2}.log")
        for path in (old.log, old.index):
            path.unlink(missing_ok=True)
        return folder / f"{restarts}.log"

    def may_restart(self, container: str) -> bool:  # noqa: ARG002
        """Kubelets have no limit of restarts."""
        return True

    def changed(self) -> None:
        self._change.set()

    def tell(self, reason: str, message: str, container: str = "", *, warning: bool = False) -> None:
        self._events.tell(self.pod.manifest, reason, message, container, warning=warning)

    def started(self, container: str, log: Path) -> None: ...
    def ended(self, container: str, exit: Exit, reason: str) -> None: ...


def _go_on(container: PodContainer, status: ContainerStatus, *, is_over: bool) -> None:
    """Continue with the container's last end, or with its next run. Init containers run again with their pod."""
    running, ended = status.state.running, _exited(status.state.terminated)
    runs_again = not is_over and (running is not None or ended is None or container.is_init)
    if running is not None:
        ended = lost(running.started_at or datetime.now(UTC))
    last = _exited(status.last_state.terminated)
    container.adopt(ended, last, status.restart_count, runs_again=runs_again)


def _exited(end: ContainerStateTerminated | None) -> Exited | None:
    if end is None:
        return None
    now = datetime.now(UTC)
    return Exited(end.exit_code, end.started_at or now, end.finished_at or now, end.reason, end.message)


class ProcessRuntime:
    """`async with ProcessRuntime(client, folder, base_env, networks)`: leaving ends every process.

    `folder` holds logs, scratch space and shares, and outlives the runtime; `base_env` holds variables of every
    process. Without `networks`, pods share the network of this machine."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        base_env: Mapping[str, str],
        networks: Networks | None = None,
        options: ProcessNodeOptions | None = None,
    ) -> None:
        self.client, self.folder, options = client, folder, options or ProcessNodeOptions()
        self.uses = RecentUses()
        self.engine = Engine(folder, self.uses.add, renews=True)
        self._events = Events(client, {"component": "kubelet", "host": options.node})
        self._sources = ApiSources(client, options.api, folder / "shares")
        self._node = Node(
            engine=self.engine,
            sources=self._sources,
            base_env=base_env,
            networks=networks,
            options=replace(options, refuses_root=True),
        )
        self.pods: dict[str, OwnedPod] = {}
        """Pods by uid."""

    async def __aenter__(self) -> Self:
        (self.folder / "pods").mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._events)
            await stack.enter_async_context(self.engine)
            await self._remove_leftovers()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        lives = [each.pod.life for each in self.pods.values() if each.pod.life is not None]
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        await self._stack.aclose()

    async def _remove_leftovers(self) -> None:
        """Remove folders of pods that were deleted while no kubelet ran."""
        listing = await list_all(self.client, Kind(PodOnNode), requests.PODS.path(), {})
        uids = {pod.metadata.uid for pod in listing.items}
        for folder in (self.folder / "pods").iterdir():
            if folder.name.rpartition("_")[2] not in uids:
                await self._remove(folder)

    async def _remove(self, folder: Path) -> None:
        """Remove a folder. A failure must not end the node: the next start tries again."""
        try:
            if folder.exists():
                await asyncio.to_thread(volumes.remove, folder)
        except OSError as problem:
            log.warning("%s cannot be removed: %s", folder, problem)

    # Called by the kubelet (Runtime).

    async def run(self, pod: PodOnNode, report: Report) -> None:
        owned = self.pods.get(pod.metadata.uid)
        if owned is None:
            manifest = await self._manifest(pod)
            if manifest is None:
                return
            folder = self._folder(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            owned = self.pods[pod.metadata.uid] = OwnedPod(manifest, self._node, folder, self._events)
            if not owned.adopt(pod.statuses):
                await report(owned.pod.state())
                return
        await owned.run(report)

    async def update(self, pod: PodOnNode) -> None:
        owned, manifest = self.pods.get(pod.metadata.uid), await self._manifest(pod)
        if owned is not None and manifest is not None:
            added = manifest["spec"].get("ephemeralContainers") or []
            begun = {each.name for each in pod.status.ephemeral_container_statuses if each.has_started}
            await asyncio.gather(*(owned.pod.debug(each) for each in added if each["name"] not in begun))

    async def stop(self, pod: PodOnNode, grace: float) -> PodState:
        owned = self.pods.get(pod.metadata.uid)
        return self._unseen(pod) if owned is None else await owned.pod.stop(grace)

    async def forget(self, pod: PodOnNode) -> None:
        meta = pod.metadata
        owned = self.pods.pop(meta.uid, None)
        if owned is not None:
            await owned.pod.stop(0)
        self._events.forget(meta.uid)
        self._sources.forget(meta.uid)
        await self._remove(self._folder(meta.namespace, meta.name, meta.uid))

    async def _manifest(self, pod: PodOnNode) -> Manifest | None:
        """Whole manifest of a pod; None if this very pod is gone."""
        path = requests.PODS.path(pod.metadata.namespace, pod.metadata.name)
        try:
            manifest: Manifest = await patience.send(self.client, requests.get(path))
        except NotFound:
            return None
        return manifest if manifest["metadata"]["uid"] == pod.metadata.uid else None

    def _unseen(self, pod: PodOnNode) -> PodState:
        now = datetime.now(UTC)
        lost = ContainerState(Exited(SIGKILLED, now, now, STATUS_UNKNOWN, UNSEEN))
        names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
        return PodState(
            phase="Failed",
            ip="",
            host_ip=self._node.options.host_ip,
            started=now,
            changed=now,
            containers=dict.fromkeys(names, lost),
        )

    # Called by the kubelet's server (Containers).

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool) -> LogSource:
        life = self._find(namespace, pod)
        folder = self._known_folder(namespace, pod) / "logs" / container
        if life is not None and container not in life.every:
            raise NoSuchContainer(f"container {container} is not valid for pod {pod}")
        runs = sorted(int(log.stem) for log in folder.glob("*.log"))
        current = life.every[container] if life else None
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
    ) -> ExecProcess:
        target = self._find_container(namespace, pod, container)
        if target is None:
            raise NoSuchContainer(f'container not found ("{container}")')
        if target.process is None or not target.is_running:
            raise NoSuchContainer(f"container {container} of pod {pod} is not running")
        return await self.engine.exec(target.process, argv, stdin=stdin, tty=tty)

    def console(self, namespace: str, pod: str, container: str) -> Console | None:
        target = self._find_container(namespace, pod, container)
        return target.console if target else None

    async def connect(self, namespace: str, pod: str, port: int) -> socket.socket:
        life = self._find(namespace, pod)
        if life is None:
            raise ConnectionRefusedError(f"pod {namespace}/{pod} does not run on this node")
        if life.network is not None:
            return await asyncio.to_thread(life.network.connect, port)
        return await asyncio.to_thread(socket.create_connection, (LOOPBACK, port))

    def _find(self, namespace: str, name: str) -> PodLife | None:
        pods = [each.pod for each in self.pods.values()]
        chosen = [each for each in pods if (each.namespace, each.name) == (namespace, name)]
        return chosen[-1] if chosen else None

    def _find_container(self, namespace: str, pod: str, name: str) -> PodContainer | None:
        life = self._find(namespace, pod)
        return life.every.get(name) if life else None

    def _folder(self, namespace: str, name: str, uid: str) -> Path:
        return self.folder / "pods" / folder_name(namespace, name, uid)

    def _known_folder(self, namespace: str, name: str) -> Path:
        """Folder of a pod, also of one that ended before this kubelet was started."""
        life = self._find(namespace, name)
        if life is not None:
            return life.owner.folder
        folders = [*(self.folder / "pods").glob(folder_name(namespace, name, "*"))]
        if not folders:
            raise NoSuchContainer(f'pod "{name}" not found on this node')
        return max(folders, key=lambda folder: folder.stat().st_mtime)

    def processes(self, uid: str) -> dict[str, ContainerProcess]:
        """Processes of the running containers of a pod, by name."""
        containers = self.pods[uid].pod.every.values() if uid in self.pods else ()
        return {each.name: each.process for each in containers if each.process and each.is_running}

    def growing_logs(self) -> list[Path]:
        """Logs of the running containers."""
        containers = [each for owned in self.pods.values() for each in owned.pod.every.values()]
        return [each.log for each in containers if each.is_running and each.log is not None]


def _waiting_to_start(container: PodContainer | None, name: str, pod: str) -> str:
    current = container.current if container else None
    reason = current.reason if isinstance(current, Waiting) else "ContainerCreating"
    return f'container "{name}" in pod "{pod}" is waiting to start: {reason}'


def _is_over(container: PodContainer, run: int) -> bool:
    return container.restarts > run or not (container.is_running or container.console)
