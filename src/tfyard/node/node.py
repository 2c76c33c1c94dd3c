"""This machine as a node: takes pod manifests, runs their containers as processes, and reports how they end.

It knows pods only. The caller says where their volumes are and how their logs are named.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Manifest

from . import SCRATCH, WORK, containers
from .logs import tail
from .memory import MemoryLimits, Use, memory_limit
from .pod import Container, Options, Pod, PodState
from .processes import Command, Exit, Processes
from .volumes import Volumes


class ContainerStarted(Struct, frozen=True):
    uid: str
    """Of its pod."""
    container: str
    log_name: str
    start: int
    """Counts the starts under this log name; each has a log of its own."""
    log: Path


class ContainerEnded(Struct, frozen=True):
    started: ContainerStarted
    exit: Exit
    reason: str
    is_stopped: bool
    """It ended because it was asked to, not by itself."""


class PodsMeasured(Struct, frozen=True):
    uses: dict[str, Use]
    """By the pod's uid."""


NodeEvent = ContainerStarted | ContainerEnded | PodsMeasured


class _Process(Struct, kw_only=True, eq=False):
    """A container that runs."""

    pod: Pod
    container: Container
    started: ContainerStarted
    is_asked_to_stop: bool = False


class Node:
    """`async with` starts the supervisor; leaving ends every process.

    `directory` holds logs and scratch space; `base_env` is what every process has in its environment.
    """

    def __init__(
        self,
        directory: Path,
        base_env: Mapping[str, str],
        on_event: Callable[[NodeEvent], None],
        *,
        use_cgroups: bool = True,
    ) -> None:
        self.directory, self.scratch = directory, directory / SCRATCH
        self.processes = Processes(directory / "supervisor.log", self._exited, str(self.scratch))
        self.change = asyncio.Event()
        """Set whenever the state of a pod changes; the one who waits for it clears it."""
        self.rewritten: dict[str, str] = {}
        """Mount path -> directory, where no private view of the disk is possible and text is changed instead."""
        self._base_env, self._on_event = base_env, on_event
        self._pods: dict[str, Pod] = {}
        self._running: dict[str, _Process] = {}
        self._starts: dict[str, int] = {}
        self._memory = MemoryLimits(self.processes, self._measured, use_cgroups=use_cgroups)

    async def __aenter__(self) -> Self:
        (self.directory / "logs").mkdir(exist_ok=True)
        await self.processes.__aenter__()
        self._measuring = asyncio.create_task(self._memory.measure())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._measuring.cancel()
        await asyncio.gather(self._measuring, return_exceptions=True)
        await self.processes.__aexit__()

    # For callers.

    def create(self, manifest: Manifest, volumes: Volumes, options: Options) -> None:
        pod = self._pods[manifest["metadata"]["uid"]] = Pod(manifest, volumes, options, self)
        pod.begin()

    def delete(self, uid: str, grace: float | None = None) -> None:
        """`grace`: seconds, instead of the pod's own; 0 kills at once."""
        if uid in self._pods:
            self._pods[uid].delete(grace)
            self._forget_gone()

    def evict(self, uid: str, reason: str, grace: float | None = None) -> float | None:
        """The grace period that it has; None: there is no such pod."""
        if uid not in self._pods:
            return None
        pod = self._pods[uid]
        pod.evict(reason, grace)
        return pod.grace if grace is None else grace

    def states(self) -> list[PodState]:
        return [pod.state() for pod in self._pods.values()]

    def command(
        self, pod: Manifest, container: Manifest, volumes: Volumes, *, private_view: bool | None = None
    ) -> Command:
        """The process that this container is here: the kubelet's rules, then this machine's ways."""
        env = containers.environment(pod, container, volumes.objects)
        command = Command(
            argv=containers.argv(container, env),
            env=env,
            cwd=str(container.get("workingDir") or self._own_directory(pod, container)),
            mounts=volumes.mounts(pod, container, self._scratch(pod)),
        )
        if not (self.processes.namespaces if private_view is None else private_view):
            mapping = {target: source for source, target, _ in command.mounts}
            text = "\n".join((*command.argv, command.cwd, *command.env.values()))
            self.rewritten |= {path: at for path, at in mapping.items() if containers.mentions(text, path)}
            command = without_mounts(command)
        return replace(command, env={**self._base_env, **command.env})

    # For pods (pod.Host).

    def changed(self) -> None:
        self.change.set()

    def later(self, delay: float, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(delay, call)

    def start(self, pod: Pod, container: Container) -> None:
        uid, name = pod.manifest["metadata"]["uid"], pod.manifest["metadata"]["name"]
        id = f"{name}/{uid}/{container.name}/{container.starts}"
        self.scratch.mkdir(mode=0o700, exist_ok=True)  # Secrets are written there
        pod.volumes.make(pod.manifest, container.spec, self._scratch(pod.manifest))
        if not container.spec.get("workingDir"):
            _make_empty(self._own_directory(pod.manifest, container.spec))
        command = self.command(pod.manifest, container.spec, pod.volumes)
        command = self._memory.limit(id, command, memory_limit(container.spec))
        started = self._next_log(uid, container.name, pod.options.log_name(container.name))
        self._running[id] = _Process(pod=pod, container=container, started=started)
        self.processes.start(id, command, started.log)
        self._on_event(started)

    def stop(self, container: Container, grace: float) -> None:
        for id, process in self._running.items():
            if process.container is container:
                process.is_asked_to_stop = True
                self.processes.signal(id, signal.SIGTERM if grace else signal.SIGKILL)
                if grace:
                    self.later(grace, lambda id=id: self._kill(id))  # type: ignore[misc]

    # How processes are started and end.

    def _scratch(self, pod: Manifest) -> Path:
        """Of this pod alone: a new pod of the same name starts with empty scratch space."""
        return self.scratch / f"{pod['metadata']['name']}-{pod['metadata'].get('uid', '')}"

    def _own_directory(self, pod: Manifest, container: Manifest) -> Path:
        """Of a container that does not say where it works. As in the file system of an image, what it writes there
        is its own, and gone when it starts again, or when a pod of the same name does: only one of them runs."""
        return self.directory / WORK / str(pod["metadata"]["name"]) / str(container["name"])

    def _next_log(self, uid: str, container: str, log_name: str) -> ContainerStarted:
        start = self._starts[log_name] = self._starts.get(log_name, 0) + 1
        return ContainerStarted(
            uid, container, log_name, start, self.directory / "logs" / f"{log_name}.{start}.log"
        )

    def _exited(self, id: str, exit: Exit) -> None:
        if id not in self._running:
            return  # not a container: a process that the caller started
        process = self._running.pop(id)
        pod, container = process.pod, process.container
        if self._memory.ended(id):
            container.reason = "OOMKilled"
        pod.exited(container, exit.code, tail(process.started.log) if exit.code else "")
        # If it had ended before the signal was sent, it ended by itself.
        is_stopped = exit.signalled and process.is_asked_to_stop
        self._on_event(ContainerEnded(process.started, exit, pod.evicted or container.reason, is_stopped))
        self._forget_gone()

    def _forget_gone(self) -> None:
        for uid in [uid for uid, pod in self._pods.items() if pod.is_gone]:
            del self._pods[uid]

    def _kill(self, id: str) -> None:
        if id in self._running:
            self.processes.signal(id, signal.SIGKILL)

    def _measured(self, uses: dict[str, Use]) -> None:
        """By container, and told by pod."""
        pods: dict[str, Use] = {}
        for id, use in uses.items():
            if id in self._running:
                uid = self._running[id].started.uid
                pods[uid] = pods[uid].plus(use) if uid in pods else use
        self._on_event(PodsMeasured(pods))


def _make_empty(directory: Path) -> None:
    if directory.exists():
        from shutil import rmtree  # slow to import, and only needed for a restart

        rmtree(directory)
    directory.mkdir(parents=True)


def without_mounts(command: Command) -> Command:
    """With directories of this machine instead of mount paths, wherever those are mentioned."""
    mapping = {target: source for source, target, _ in command.mounts}
    return replace(
        command,
        argv=[containers.rewrite(part, mapping) for part in command.argv],
        env={name: containers.rewrite(value, mapping) for name, value in command.env.items()},
        cwd=containers.rewrite(command.cwd, mapping),
        mounts=(),
    )
