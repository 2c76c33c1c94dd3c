"""One pod as processes: volumes and network first, init containers in turn, then its containers side by side."""

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.model import DEFAULT_GRACE, Manifest, Phase

from . import containers
from .container import PodContainer
from .hosts import hostname
from .linux_namespaces import Mount
from .node import Node, PodNetwork, PodOwner
from .pod_data import with_limits
from .processes import ContainerCommand
from .states import Exited, PodState, Running, Waiting
from .volumes import PodVolumes, remove

log = logging.getLogger(__name__)

RETRY_MOUNT = 1.0
CHECK_SIZES_EVERY = 2.0
REFRESH_EVERY_TICKS = 30
KINDS = ("initContainers", "containers")


class PodLife:
    """A pod. `owner` decides what the manifest leaves open, and is notified of what happens."""

    def __init__(self, manifest: Manifest, node: Node, owner: PodOwner) -> None:
        self.manifest, self.node, self.owner, self.engine = manifest, node, owner, node.engine
        meta, spec = manifest["metadata"], manifest["spec"]
        self.uid, self.name = str(meta["uid"]), str(meta["name"])
        self.namespace = str(meta.get("namespace") or "default")
        self.id = f"{self.name}_{self.namespace}({self.uid})"
        self.policy = str(spec["restartPolicy"])
        grace = spec.get("terminationGracePeriodSeconds")
        self.grace = float(DEFAULT_GRACE if grace is None else grace)
        self.is_on_host = bool(spec.get("hostNetwork"))
        self.hostname = socket.gethostname() if self.is_on_host else hostname(manifest)
        self.network: PodNetwork | None = None
        self.address = ""
        self.rewritten: dict[str, str] = {}
        """Mount path -> directory, where no private view of the disk is possible and text is changed instead."""
        may_mount = (
            node.networks is not None
        )  # a process that makes networks is in a mount namespace of its own
        folder = owner.folder / "volumes"
        self.volumes = PodVolumes(node.sources, self._described(), folder, may_mount=may_mount)
        self._make_containers()
        self.changed_at = datetime.now(UTC)
        begun = (manifest.get("status") or {}).get("startTime")
        self.began = datetime.fromisoformat(begun) if begun else self.changed_at
        self.stopping = asyncio.Event()
        self.deadline = 0.0
        """End of the grace period by the loop's clock, when stopping."""
        self.failure = ("", "")
        """Why the node has ended the pod: reason and message."""
        self.is_over = self._is_ending = False
        self.life: asyncio.Task[None] | None = None
        self._sidecars: list[asyncio.Task[None]] = []

    def _described(self) -> Manifest:
        """The manifest as the downward API shows it."""
        spec, allocatable = self.manifest["spec"], self.node.options.allocatable
        limited = {kind: [with_limits(each, allocatable) for each in spec.get(kind) or []] for kind in KINDS}
        return {**self.manifest, "spec": {**spec, **limited}}

    def _make_containers(self) -> None:
        spec = self.manifest["spec"]
        inits, waiting = spec.get("initContainers") or [], "ContainerCreating"
        if inits:
            waiting = "PodInitializing"
        self.inits = [PodContainer(each, self, waiting, is_init=True) for each in inits]
        self.containers = [PodContainer(each, self, waiting) for each in spec["containers"]]
        self.all = {each.name: each for each in (*self.inits, *self.containers)}
        self.ephemeral: dict[str, PodContainer] = {}
        """Containers of `kubectl debug`. They run once, and the pod does not wait for them."""

    # Called by the owner.

    def start(self) -> asyncio.Task[None]:
        """Start the pod, unless it has started; the task ends with the pod."""
        if self.life is None:
            self.life = asyncio.create_task(self._live())
        return self.life

    async def plan(self, *, private_view: bool) -> list[tuple[Manifest, ContainerCommand]]:
        """Commands of the containers, in the order of their start. Nothing is made or started."""
        await self.volumes.find()
        await self.volumes.check()
        messages, specs = self.owner.folder / "messages", [each.spec for each in self.all.values()]
        return [
            (
                each,
                await self.command(each, messages / str(each["name"]), private_view=private_view, make=False),
            )
            for each in specs
        ]

    async def debug(self, spec: Manifest) -> None:
        """Run an ephemeral container, unless it has run before."""
        if spec["name"] in self.every or self.stopping.is_set():
            return
        once = {**spec, "restartPolicy": "Never"}
        container = PodContainer(once, self, "ContainerCreating", is_ephemeral=True)
        self.ephemeral[container.name] = container
        try:
            await container.run()
        except Exception as error:  # noqa: BLE001 the pod goes on without this container
            self.owner.tell("Failed", f"Error: {error}", container.name, warning=True)
            container.lose(datetime.now(UTC))
            self.changed()

    @property
    def every(self) -> dict[str, PodContainer]:
        return {**self.all, **self.ephemeral}

    async def stop(self, grace: float, *, by_keyboard: bool = False) -> PodState:
        """Stop containers first, then sidecars, all within the grace period. `by_keyboard`: as Ctrl-C does."""
        loop = asyncio.get_running_loop()
        self.deadline = loop.time() + grace
        has_all = not grace or self._is_ending
        chosen = [each for each in self.every.values() if has_all or not each.is_sidecar]
        for each in chosen:
            if each.is_running and not self.stopping.is_set():
                self.owner.tell("Killing", f"Stopping container {each.name}", each.name)
        self.stopping.set()
        stops = (each.stop(grace, by_keyboard=by_keyboard) for each in chosen)
        ends = await asyncio.gather(*stops, return_exceptions=True)
        for error in (end for end in ends if isinstance(end, Exception)):
            await self._fail(error)
        if self.life is not None:
            await asyncio.wait([self.life])
        else:
            self.settle()
        return self.state()

    def evict(self, reason: str, message: str = "", grace: float = 0) -> Coroutine[Any, Any, PodState]:
        """End the pod as failed, for this reason."""
        self.failure = (reason, message)
        self.changed()
        return self.stop(grace)

    def state(self) -> PodState:
        reason, message = self.failure
        return PodState(
            phase=self._phase(),
            ip=self.address,
            host_ip=self.node.options.host_ip,
            started=self.began,
            changed=self.changed_at,
            containers={name: each.state() for name, each in self.every.items()},
            reason=reason,
            message=message,
        )

    def _phase(self) -> Phase:
        """Phase of the pod, which ends with the last container, as in a kubelet, and not with the clean-up after
        it: the pod of a task that has ended must not seem to run."""
        has_ended = all(each.has_ended for each in self.containers)
        if self.is_over or (has_ended and not any(each.is_running for each in self.all.values())):
            is_good = all(each.exit_code == 0 for each in self.containers)
            return "Succeeded" if is_good and not any(self.failure) else "Failed"
        is_begun = all(isinstance(each.current, (Running, Exited)) or each.last for each in self.containers)
        return "Running" if is_begun else "Pending"

    def settle(self) -> None:
        """End the pod: no container is left waiting, unless an init container has failed."""
        has_failed = any(init.exit_code for init in self.inits if not init.is_sidecar)
        for each in self.all.values():
            if isinstance(each.current, Waiting) and each.last is not None:
                each.current, each.last = each.last, None
            elif isinstance(each.current, Waiting) and not has_failed:
                each.lose(datetime.now(UTC))
        self.is_over = True
        self.changed()

    # Its life.

    async def _live(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._run_all(tasks)
        except* Exception as errors:  # noqa: BLE001 any error ends this pod only
            await self._fail(errors.exceptions[0])
        finally:
            try:
                self._release()
            except OSError:
                log.exception("the network or a volume of the pod %s/%s stays", self.namespace, self.name)
        self.settle()

    async def _run_all(self, tasks: asyncio.TaskGroup) -> None:
        self._report_unused_settings()
        looking = tasks.create_task(self._look_after())
        if await self._set_up() and await self._initialize(tasks):
            await asyncio.gather(*(tasks.create_task(each.run()) for each in self.containers))
        await self._stop_sidecars()
        await asyncio.gather(*(each.stop(0) for each in self.ephemeral.values()))
        looking.cancel()

    def _report_unused_settings(self) -> None:
        user = os.getuid()
        if unused := containers.unused_security(self.manifest, user, os.getgid()):
            reason = f"not used on this node, where all processes run as user {user}: {', '.join(unused)}"
            self.owner.tell("SecurityContextNotSupported", f"securityContext is {reason}", warning=True)

    async def _fail(self, error: Exception) -> None:
        """End this pod after an error of tfyard or of the machine; the node goes on."""
        is_defect, name = not isinstance(error, TfyardError), type(error).__name__
        if is_defect:
            log.error("the pod %s/%s fails", self.namespace, self.name, exc_info=error)
        message = f"The node failed to run the pod: {name}: {error}"
        self.failure = ("NodeError" if is_defect else name, message)
        self.owner.tell(self.failure[0], message, warning=True)
        self.stopping.set()
        await asyncio.gather(*(each.stop(0) for each in self.every.values()))

    async def _set_up(self) -> bool:
        """Retry until network and volumes are there: a claim may be bound later. False if stopped meanwhile."""
        while not self.stopping.is_set():
            try:
                self._connect()
                await self.volumes.make()
                return True
            except OSError as error:
                message = f"Failed to create pod sandbox: {error}"
                self.owner.tell("FailedCreatePodSandBox", message, warning=True)
            except TfyardError as error:
                self.owner.tell("FailedMount", str(error), warning=True)
            await self.containers[0].pause(RETRY_MOUNT)
        return False

    def _connect(self) -> None:
        """Make folders and a network, unless the pod has them."""
        folder, networks, host_ip = self.owner.folder, self.node.networks, self.node.options.host_ip
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("volumes", "messages"):
            (folder / name).mkdir(exist_ok=True)
        if self.address:
            return
        if networks is None or self.is_on_host:
            self.address = host_ip
        else:
            self.network = networks.add(self.uid)
            self.address = self.network.address
            networks.hosts.add_pod(self.manifest, self.address, folder / "hosts")
        addresses = {"podIP": self.address, "hostIP": host_ip}
        self.manifest = {**self.manifest, "status": {**(self.manifest.get("status") or {}), **addresses}}

    def _release(self) -> None:
        networks = self.node.networks
        if self.network is not None and networks is not None:
            networks.hosts.remove(self.uid)
            networks.remove(self.network)
            self.network = None
        self.volumes.release()
        for each in self.every.values():
            if each.process is not None:
                self.engine.forget(each.process)

    async def _initialize(self, tasks: asyncio.TaskGroup) -> bool:
        """Run the init containers; true if all have succeeded. Sidecars among them go on."""
        for init in self.inits:
            if init.is_sidecar:
                self._sidecars.append(tasks.create_task(init.run()))
                await self._until_started(init)
            else:
                await init.run()
                if init.exit_code != 0:
                    return False
        return not self.stopping.is_set()

    async def _until_started(self, sidecar: PodContainer) -> None:
        waits = [asyncio.ensure_future(each.wait()) for each in (sidecar.started, self.stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _stop_sidecars(self) -> None:
        """Stop sidecars in the reverse order of their start, when all others have ended."""
        loop = asyncio.get_running_loop()
        if not self.stopping.is_set():
            self.deadline = loop.time() + self.grace
        self.stopping.set()
        self._is_ending = True
        for init in reversed(self.inits):
            if init.is_sidecar:
                await init.stop(max(self.deadline - loop.time(), 0))
        await asyncio.gather(*self._sidecars)

    async def _look_after(self) -> None:
        """Evict the pod if a volume grows too large, and refresh files that change."""
        for tick in itertools.count(1):
            await asyncio.sleep(CHECK_SIZES_EVERY)
            is_limited = self.volumes.is_limited
            if is_limited and (overfull := await asyncio.to_thread(self.volumes.find_overfull)):
                self.owner.tell("Evicted", overfull, warning=True)
                await self.evict("Evicted", overfull)
            if tick % REFRESH_EVERY_TICKS == 0:
                try:
                    await self.volumes.refresh()
                except TfyardError as error:
                    self.owner.tell("FailedMount", str(error), warning=True)

    # Called by containers (container.Home).

    async def command(
        self, container: Manifest, message: Path, *, private_view: bool | None = None, make: bool = True
    ) -> ContainerCommand:
        """The command of a container on this machine. `message`: the file of its termination message."""
        options = self.node.options
        if options.refuses_root:
            containers.refuse_root(self.manifest, container, os.getuid())
        container = self.node.with_entrypoint(with_limits(container, options.allocatable))
        sources, named = self.node.sources, [container.get("env"), container.get("envFrom")]
        services = await sources.services(self.manifest)
        objects = await sources.objects(self.manifest, named)
        own = containers.environment(self.manifest, container, objects, services)
        env = {**services, "HOSTNAME": self.hostname, **own}
        mounts = self.volumes.mounts(container, env, make=make)
        command = ContainerCommand(
            argv=[self._rewrite(part) for part in containers.argv(container, env)],
            env={name: self._rewrite(value) for name, value in env.items()},
            cwd=str(container.get("workingDir") or self._work(str(container["name"]), make=make)),
            stdin=str(container["name"]) == options.input_of,
            mounts=mounts,
            files=self._files(container, message),
            network=self.network.path if self.network else "",
            hostname="" if self.is_on_host else self.hostname,
        )
        if any(Path(file).is_relative_to(target) for file, _, _ in command.files for _, target, _ in mounts):
            command = replace(command, mounts=(*mounts, *command.files), files=())  # a volume would hide them
        if not (self.engine.has_namespaces if private_view is None else private_view):
            command = self._without_view(command)
        return replace(command, env={**self.node.base_env, **command.env})

    def _without_view(self, command: ContainerCommand) -> ContainerCommand:
        """The command with directories of this machine in place of mount paths, wherever those are mentioned."""
        mapping = {target: source for source, target, _ in (*command.mounts, *command.files)}
        text = "\n".join((*command.argv, command.cwd, *command.env.values()))
        self.rewritten |= {path: at for path, at in mapping.items() if containers.mentions(text, path)}
        return replace(
            command,
            argv=[containers.rewrite(part, mapping) for part in command.argv],
            env={name: containers.rewrite(value, mapping) for name, value in command.env.items()},
            cwd=containers.rewrite(command.cwd, mapping),
            mounts=(),
            files=(),
            hostname="",
        )

    def _files(self, container: Manifest, message: Path) -> tuple[Mount, ...]:
        path = str(container.get("terminationMessagePath") or "/dev/termination-log")
        hosts = (str(self.owner.folder / "hosts"), "/etc/hosts", False)
        return (*([hosts] if self.network is not None else []), (str(message), path, False))

    def _work(self, container: str, *, make: bool) -> Path:
        """Working directory of a container that names none. As in the file system of an image, its files are its
        own, and gone when it starts again, or when a pod of the same name does: only one of them runs."""
        if self.node.options.work is None:
            return Path("/")
        directory = self.node.options.work / self.name / container
        if make and directory.exists():
            remove(directory)
        if make:
            directory.mkdir(parents=True)
        return directory

    def _rewrite(self, text: str) -> str:
        return self.node.options.rewrite(text, self.namespace)

    def changed(self) -> None:
        self.changed_at = datetime.now(UTC)
        self.owner.changed()
