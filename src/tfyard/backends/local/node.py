"""This machine as the node of one run: its pods, their events, and the sources of their volumes."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Manifest
from tfyard.node import SCRATCH, WORK
from tfyard.node.engine import Engine
from tfyard.node.memory import Use
from tfyard.node.node import Node, NodeOptions
from tfyard.node.pod import PodLife
from tfyard.node.pod_data import Objects
from tfyard.node.processes import ContainerCommand, Exit
from tfyard.node.volumes import LASTING, inside, lasting_name

DEADLINE = "DeadlineExceeded"
UNTOLD = ("BackOff", "Failed", "SecurityContextNotSupported", "SupervisorLost")
"""Reasons of warnings that a run reports in its own words."""


class ContainerStarted(Struct, frozen=True):
    uid: str
    """Uid of its pod."""
    container: str
    log_name: str
    start: int
    """Number of the start under this log name; each has its own log."""
    log: Path


class ContainerEnded(Struct, frozen=True):
    started: ContainerStarted
    exit: Exit
    reason: str
    is_stopped: bool
    """Whether it ended because it was asked to, not by itself."""


class PodsMeasured(Struct, frozen=True):
    uses: dict[str, Use]
    """Uid of a pod -> its use of memory and CPU."""


class LineBegun(Struct, frozen=True):
    """A line without an end yet, such as a progress bar, which a screen may show."""

    started: ContainerStarted
    line: bytes


class PodWarning(Struct, frozen=True):
    """A warning about a pod, as an event of a cluster would report it."""

    pod: str
    text: str


NodeEvent = ContainerStarted | ContainerEnded | PodsMeasured | LineBegun | PodWarning


class FileSources(Struct, frozen=True):
    """Directories of volumes. `lasting`: folder of claims and network shares; `given`: volume -> directory."""

    lasting: Path
    given: Mapping[str, Path] = {}
    known: Objects = Objects()

    async def objects(self, pod: Manifest, part: Any) -> Objects:  # noqa: ARG002
        return self.known

    async def services(self, pod: Manifest) -> dict[str, str]:  # noqa: ARG002
        return {}

    async def token(self, pod: Manifest, audience: str, seconds: int) -> None:  # noqa: ARG002
        return None

    async def storage(self, pod: Manifest, volume: Manifest) -> Path | None:  # noqa: ARG002
        return self.directory(volume)

    def directory(self, volume: Manifest) -> Path | None:
        """The directory of a volume that outlives pods; None for others."""
        if volume["name"] in self.given:
            return self.given[volume["name"]]
        kind = next((kind for kind in LASTING if volume.get(kind)), None)
        return inside(self.lasting, lasting_name(kind, volume[kind])) if kind else None


class PodOptions(Struct, frozen=True, kw_only=True):
    """Options of a pod beyond its manifest."""

    log_name: Callable[[str], str]
    """Name of a container -> name of its logs."""
    may_restart: Callable[[str], bool] = lambda _container: True
    """Tells before each restart in place whether a container may restart. If not, the pod waits to be deleted."""


class LocalPod:
    """One pod of a run (node.node.Owner)."""

    def __init__(self, manifest: Manifest, run: "LocalNode", options: PodOptions) -> None:
        meta = manifest["metadata"]
        self.folder = run.scratch / f"{meta['name']}-{meta['uid']}"
        """Scratch space of this pod alone: a new pod of the same name starts with an empty one."""
        self.deleting: datetime | None = None
        """When it will be gone at the latest, like Kubernetes' deletionTimestamp."""
        self.asked_to_stop = False
        """Whether its deletion came before the end of its program."""
        self.may_restart = options.may_restart
        self._run, self._log_name = run, options.log_name
        self._started: dict[str, ContainerStarted] = {}
        self._told: set[str] = set()
        self.pod = PodLife(manifest, run.node, self)

    @property
    def is_running(self) -> bool:
        return any(each.is_running for each in self.pod.every.values())

    def new_log(self, container: str, restarts: int) -> Path:  # noqa: ARG002
        started = self._started[container] = self._run.next_log(
            self.pod.uid, container, self._log_name(container)
        )
        return started.log

    def last_start(self, container: str) -> ContainerStarted:
        return self._started[container]

    def changed(self) -> None:
        self._run.change.set()

    def tell(self, reason: str, message: str, container: str = "", *, warning: bool = False) -> None:
        text = f"{container}: {message}" if container and len(self.pod.all) > 1 else message
        if warning and reason not in UNTOLD and text not in self._told:
            self._told.add(text)
            self._run.on_event(PodWarning(self.pod.name, text))

    def started(self, container: str, log: Path) -> None:  # noqa: ARG002
        self._run.on_event(self._started[container])

    def ended(self, container: str, exit: Exit, reason: str) -> None:
        # A container that had ended before the signal was sent ended by itself.
        is_stopped = exit.signalled and self.pod.stopping.is_set()
        reason = self.pod.failure[0] or reason
        self._run.on_event(ContainerEnded(self._started[container], exit, reason, is_stopped))


class LocalNode:
    """The node of one run. `async with` starts the supervisor; leaving ends every process.

    `directory` holds logs and scratch space; `base_env` is in the environment of every process.
    """

    def __init__(
        self,
        directory: Path,
        base_env: Mapping[str, str],
        on_event: Callable[[NodeEvent], None],
        sources: FileSources,
        *,
        options: NodeOptions | None = None,
        use_cgroups: bool = True,
    ) -> None:
        self.directory, self.scratch, self.on_event = directory, directory / SCRATCH, on_event
        self.engine = Engine(
            directory,
            self._measured,
            scratch=str(self.scratch),
            use_cgroups=use_cgroups,
            on_unfinished=self._unfinished,
        )
        options = replace(options or NodeOptions(), work=directory / WORK)
        self.node = Node(engine=self.engine, sources=sources, base_env=base_env, options=options)
        self.change = asyncio.Event()
        """Set whenever the state of a pod changes; the task that waits for it clears it."""
        self.pods: dict[str, LocalPod] = {}
        """Uid -> pod."""
        self._planned_rewrites: dict[str, str] = {}
        self._starts: dict[str, int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        (self.directory / "logs").mkdir(exist_ok=True)
        await self.engine.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        lives = [each.pod.life for each in self.pods.values() if each.pod.life]
        for task in (*lives, *self._tasks):
            task.cancel()
        await asyncio.gather(*lives, *self._tasks, return_exceptions=True)
        await self.engine.__aexit__()

    def create(self, manifest: Manifest, options: PodOptions) -> None:
        self.scratch.mkdir(mode=0o700, exist_ok=True)  # Secrets are written there
        local = LocalPod(manifest, self, options)
        self.pods[local.pod.uid] = local
        local.pod.start()
        if seconds := manifest["spec"].get("activeDeadlineSeconds"):
            self.later(float(seconds), lambda: self.evict(local.pod.uid, DEADLINE))

    def delete(self, uid: str, grace: float | None = None, *, by_keyboard: bool = False) -> None:
        """Deletes a pod. `grace`: seconds, instead of the pod's own; 0 kills at once. `by_keyboard`: its program
        is asked to end as by Ctrl-C."""
        local = self.pods.get(uid)
        if local is None:
            return
        grace = local.pod.grace if grace is None else grace
        local.deleting = local.deleting or datetime.now(UTC) + timedelta(seconds=grace)
        if local.pod.is_over:
            self._forget(uid)
        else:
            self._spawn(self._delete(local, grace, by_keyboard=by_keyboard))

    def evict(self, uid: str, reason: str, grace: float | None = None) -> float | None:
        """Evicts a pod; returns its grace period, or None if it does not exist, has ended or is ending."""
        local = self.pods.get(uid)
        if local is None or local.deleting or local.pod.stopping.is_set() or any(local.pod.failure):
            return None
        grace = local.pod.grace if grace is None else grace
        self._spawn(local.pod.evict(reason, grace=grace))
        return grace

    def plan(self, manifest: Manifest, *, private_view: bool) -> list[tuple[Manifest, ContainerCommand]]:
        """The process of each container, from the code that starts it. Raises VolumeError or ContainerConfigError
        if there is none."""
        meta = {"uid": "", **manifest["metadata"]}
        pod = LocalPod({**manifest, "metadata": meta}, self, PodOptions(log_name=str)).pod
        planned: list[tuple[Manifest, ContainerCommand]] = _finished(pod.plan(private_view=private_view))
        self._planned_rewrites |= pod.rewritten
        return planned

    def rewritten_paths(self) -> dict[str, str]:
        """Mount path -> directory, where no private view of the disk is possible and paths are replaced."""
        rewrites = [each.pod.rewritten for each in self.pods.values()]
        return {path: at for each in (self._planned_rewrites, *rewrites) for path, at in each.items()}

    def later(self, delay: float, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(delay, call)

    def next_log(self, uid: str, container: str, log_name: str) -> ContainerStarted:
        start = self._starts[log_name] = self._starts.get(log_name, 0) + 1
        log = self.directory / "logs" / f"{log_name}.{start}.log"
        return ContainerStarted(uid, container, log_name, start, log)

    async def _delete(self, local: LocalPod, grace: float, *, by_keyboard: bool) -> None:
        await local.pod.stop(grace, by_keyboard=by_keyboard)
        self._forget(local.pod.uid)

    def _forget(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.change.set()

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _unfinished(self, id: str, line: bytes) -> None:
        _, uid, container, *beside = id.split("/")[:5] if "/" in id else ("", "", "")
        if uid in self.pods and len(beside) == 1:
            self.on_event(LineBegun(self.pods[uid].last_start(container), line))

    def sessions(self) -> dict[int, str]:
        """Process that leads a session -> uid of its pod, for each container that runs."""
        pods = ((pid, id.split("/")[1] if "/" in id else "") for id, pid in self.engine.pids().items())
        return {pid: uid for pid, uid in pods if uid in self.pods}

    def _measured(self, uses: dict[str, Use]) -> None:
        """Adds up the use of processes by pod, and reports it."""
        pods: dict[str, Use] = {}
        for id, use in uses.items():
            uid = id.split("/")[1] if "/" in id else ""
            if uid in self.pods:
                pods[uid] = pods[uid].plus(use) if uid in pods else use
        self.on_event(PodsMeasured(pods))


def _finished(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing, as those over files do; it needs no event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a plan waits for something")
