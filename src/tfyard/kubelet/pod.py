"""One pod as processes: volumes and network first, init containers in turn, then its containers side by side."""

import asyncio
import itertools
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tfyard.kube import KubeError, requests
from tfyard.kubelet import references
from tfyard.kubelet.container import PodContainer
from tfyard.kubelet.pod_data import service_env, services_env, with_limits, with_resource_values
from tfyard.kubelet.runtime import Exited, PodState, Report, Running, Waiting
from tfyard.kubelet.surroundings import PodNetwork, Surroundings
from tfyard.kubelet.volumes import PodVolumes, VolumeError
from tfyard.model import Manifest
from tfyard.model.exit_codes import SIGKILLED
from tfyard.node import containers
from tfyard.node.containers import MissingObject
from tfyard.node.hosts import hostname
from tfyard.node.node import without_mounts
from tfyard.node.processes import Command

log = logging.getLogger(__name__)

RETRY_MOUNT = 1.0
CHECK_SIZES_EVERY = 2.0
REFRESH_EVERY_TICKS = 30
RESTARTED = "The node was restarted, and the processes of the pod ended with it"


class ProcessPod:
    def __init__(self, manifest: Manifest, around: Surroundings) -> None:
        self.manifest, self.around, self.engine = manifest, around, around.engine
        meta, spec = manifest["metadata"], manifest["spec"]
        self.uid, self.namespace, self.name = str(meta["uid"]), str(meta["namespace"]), str(meta["name"])
        self.id = f"{self.name}_{self.namespace}({self.uid})"
        self.folder = around.pod_folder(self.namespace, self.name, self.uid)
        self.policy, self.grace = str(spec["restartPolicy"]), float(spec["terminationGracePeriodSeconds"])
        self.is_on_host = bool(spec.get("hostNetwork"))
        self.network: PodNetwork | None = None
        self.address = ""
        self.volumes = PodVolumes(around.client, self._described(), self.folder / "volumes", around.shares)
        self._make_containers()
        self.changed_at = datetime.now(UTC)
        begun = (manifest.get("status") or {}).get("startTime")
        self.began = datetime.fromisoformat(begun) if begun else self.changed_at
        self.stopping, self.change = asyncio.Event(), asyncio.Event()
        self.deadline = 0.0
        """When stopping: the end of the grace period, by the loop's clock."""
        self.failure = ("", "")
        """Why the node has ended it: reason and message."""
        self.disruption = ""
        self.is_over = self._is_ending = False
        self.life: asyncio.Task[None] | None = None
        self._sidecars: list[asyncio.Task[None]] = []

    def _described(self) -> Manifest:
        """As the downward API tells of it."""
        spec, allocatable = self.manifest["spec"], self.around.options.allocatable
        kinds = ("initContainers", "containers")
        limited = {kind: [with_limits(each, allocatable) for each in spec.get(kind) or []] for kind in kinds}
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
        """Those of `kubectl debug`. They run once, and the pod does not wait for them."""

    # For the runtime.

    async def run(self, report: Report) -> None:
        """Report each state until the last; when this is cancelled, the pod itself goes on."""
        self.life = self.life or asyncio.create_task(self._live())
        self.life.add_done_callback(lambda _: self.change.set())
        last = None
        while True:
            self.change.clear()
            is_over, state = self.life.done(), self.state()
            if last is None or replace(state, changed=last.changed) != last:
                last = state
                await report(state)
            if is_over:
                self.life.result()
                return
            await self.change.wait()

    async def debug(self, spec: Manifest) -> None:
        """Run an ephemeral container, unless it has run before."""
        if spec["name"] in self.every or self.stopping.is_set():
            return
        once = {**spec, "restartPolicy": "Never"}
        container = PodContainer(once, self, "ContainerCreating", is_ephemeral=True)
        self.ephemeral[container.name] = container
        try:
            await container.run()
        except Exception as error:  # noqa: BLE001 it costs this container, and not the pod
            self.tell("Failed", f"Error: {error}", container.name, warning=True)
            container.lose(datetime.now(UTC))
            self.changed()

    @property
    def every(self) -> dict[str, PodContainer]:
        return {**self.all, **self.ephemeral}

    async def stop(self, grace: float) -> PodState:
        """Containers first, then sidecars, all within the grace period."""
        loop = asyncio.get_running_loop()
        self.deadline = loop.time() + grace
        has_all = not grace or self._is_ending
        chosen = [each for each in self.every.values() if has_all or not each.is_sidecar]
        for each in chosen:
            if each.is_running and not self.stopping.is_set():
                self.tell("Killing", f"Stopping container {each.name}", each.name)
        self.stopping.set()
        ends = await asyncio.gather(*(each.stop(grace) for each in chosen), return_exceptions=True)
        for error in (end for end in ends if isinstance(end, Exception)):
            await self._fail(error)
        if self.life is not None:
            await asyncio.wait([self.life])
        else:
            self._settle()
        return self.state()

    def adopt(self, statuses: list[Manifest]) -> bool:
        """After a restart of the kubelet: nothing of the pod runs any more. Its containers go on from what their
        statuses say; false if the pod's policy forbids to start again what has ended unseen."""
        is_lost = False
        for status in statuses:
            container = self.all.get(status["name"])
            if container is not None and _has_run(status):
                is_lost |= self._go_on(container, status)
        if is_lost and self.policy == "Never":
            self.disruption = RESTARTED
            self._settle()
            return False
        return True

    def _go_on(self, container: PodContainer, status: Manifest) -> bool:
        """Whether it may have run when the kubelet ended."""
        ended = _exited((status.get("state") or {}).get("terminated"))
        if ended is not None and not container.is_init:
            container.current, container.restarts = ended, int(status["restartCount"])
            container.last = _exited((status.get("lastState") or {}).get("terminated"))
            return False
        container.restarts = int(status["restartCount"]) + 1
        container.last = ended or _exited((status.get("lastState") or {}).get("terminated"))
        if "running" in (status.get("state") or {}):
            now = datetime.now(UTC)
            container.last = Exited(SIGKILLED, now, now, "ContainerStatusUnknown", RESTARTED)
            return not container.is_init
        return False

    def state(self) -> PodState:
        reason, message = self.failure
        return PodState(
            phase=self._phase(),
            ip=self.address,
            host_ip=self.around.host_ip,
            started=self.began,
            changed=self.changed_at,
            containers={name: each.state() for name, each in self.every.items()},
            reason=reason,
            message=message,
            disruption=self.disruption,
        )

    def _phase(self) -> str:
        """What is tidied up after the last container does not count, as for a kubelet: whoever sees that a task
        has ended must not take its pod for one that runs."""
        has_ended = all(each.has_ended for each in self.containers)
        if self.is_over or (has_ended and not any(each.is_running for each in self.all.values())):
            is_good = all(each.exit_code == 0 for each in self.containers)
            return "Succeeded" if is_good and not any(self.failure) else "Failed"
        is_begun = all(isinstance(each.current, (Running, Exited)) or each.last for each in self.containers)
        return "Running" if is_begun else "Pending"

    def _settle(self) -> None:
        """The pod is over: no container is left waiting, except for an init container that has failed."""
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
        except* Exception as errors:  # noqa: BLE001 whatever it is
            await self._fail(errors.exceptions[0])
        finally:
            try:
                self._release()
            except OSError:
                log.exception("the network or a volume of the pod %s/%s stays", self.namespace, self.name)
        self._settle()

    async def _run_all(self, tasks: asyncio.TaskGroup) -> None:
        self._tell_what_is_not_used()
        looking = tasks.create_task(self._look_after())
        if await self._set_up() and await self._initialize(tasks):
            await asyncio.gather(*(tasks.create_task(each.run()) for each in self.containers))
        await self._stop_sidecars()
        await asyncio.gather(*(each.stop(0) for each in self.ephemeral.values()))
        looking.cancel()

    def _tell_what_is_not_used(self) -> None:
        user = os.getuid()
        if unused := containers.unused_security(self.manifest, user, os.getgid()):
            said = f"not used on this node, where all processes run as user {user}: {', '.join(unused)}"
            self.tell("SecurityContextNotSupported", f"securityContext is {said}", warning=True)

    async def _fail(self, error: Exception) -> None:
        """A defect of ours, or of the machine, that one pod met: it costs that pod, and not the node."""
        log.error("the pod %s/%s fails", self.namespace, self.name, exc_info=error)
        said = f"The node failed to run the pod: {type(error).__name__}: {error}"
        self.failure = ("NodeError", said)
        self.tell("NodeError", said, warning=True)
        self.stopping.set()
        await asyncio.gather(*(each.stop(0) for each in self.every.values()))

    async def _set_up(self) -> bool:
        """Tried until it is done: a claim may be bound later, a ConfigMap created. False if stopped meanwhile."""
        while not self.stopping.is_set():
            try:
                self._connect()
                await self.volumes.make()
                return True
            except OSError as error:
                said = f"Failed to create pod sandbox: {error}"
                self.tell("FailedCreatePodSandBox", said, warning=True)
            except (VolumeError, KubeError) as error:
                self.tell("FailedMount", str(error), warning=True)
            await self.containers[0].pause(RETRY_MOUNT)
        return False

    def _connect(self) -> None:
        """Folders and a network, unless it has them."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("volumes", "messages", "logs"):
            (self.folder / name).mkdir(exist_ok=True)
        if self.address:
            return
        networks = self.around.networks
        if networks is None or self.is_on_host:
            self.address = self.around.host_ip
        else:
            self.network = networks.add(self.uid)
            self.address = self.network.address
            self.around.add_hosts(self.manifest, self.address, self.folder / "hosts")
        addresses = {"podIP": self.address, "hostIP": self.around.host_ip}
        self.manifest = {**self.manifest, "status": {**(self.manifest.get("status") or {}), **addresses}}

    def _release(self) -> None:
        if self.network is not None and self.around.networks is not None:
            self.around.remove_hosts(self.uid)
            self.around.networks.remove(self.network)
            self.network = None
        self.volumes.release()
        for each in self.every.values():
            if each.process is not None:
                self.engine.forget(each.process)

    async def _initialize(self, tasks: asyncio.TaskGroup) -> bool:
        """Whether all init containers have succeeded; sidecars among them go on."""
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
        """In the reverse order of their start, when all others have ended."""
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
        """Volumes that grow too large, and files that change."""
        for tick in itertools.count(1):
            await asyncio.sleep(CHECK_SIZES_EVERY)
            if overfull := await asyncio.to_thread(self.volumes.find_overfull):
                self.tell("Evicted", overfull, warning=True)
                self.failure = ("Evicted", overfull)
                await self.stop(0)
            if tick % REFRESH_EVERY_TICKS == 0:
                try:
                    await self.volumes.refresh()
                except (VolumeError, KubeError) as error:
                    self.tell("FailedMount", str(error), warning=True)

    # For its containers (container.Home).

    async def command(self, container: Manifest, message: Path) -> Command:
        """The process that this container is on this machine."""
        containers.refuse_root(self.manifest, container, os.getuid())
        container = with_resource_values(with_limits(container, self.around.options.allocatable))
        container = self.around.with_entrypoint(container)
        objects = await references.fetch(
            self.around.client, self.namespace, container.get("env"), container.get("envFrom")
        )
        own = containers.environment(self.manifest, container, objects)
        env = {**await self._service_env(), "HOSTNAME": hostname(self.manifest), **own}
        message.touch()
        mounts = (*self.volumes.mounts(container, env), *self._files(container, message))
        command = Command(
            argv=[self._rewrite(part) for part in containers.argv(container, env)],
            env={**self.around.base_env, **{name: self._rewrite(value) for name, value in env.items()}},
            cwd=str(container.get("workingDir") or "/"),
            mounts=mounts,
        )
        if self.network is not None:
            command = replace(command, network=self.network.path)
        if not self.engine.has_namespaces:
            return without_mounts(command)
        return replace(command, hostname="" if self.is_on_host else hostname(self.manifest))

    def _files(self, container: Manifest, message: Path) -> list[tuple[str, str, bool]]:
        path = str(container.get("terminationMessagePath") or "/dev/termination-log")
        hosts = [(str(self.folder / "hosts"), "/etc/hosts", False)] if self.network is not None else []
        return [*hosts, (str(message), path, False)]

    async def _service_env(self) -> dict[str, str]:
        host, port = self.around.api
        env = service_env("kubernetes", host, [{"name": "https", "port": port}])
        if self.manifest["spec"].get("enableServiceLinks", True):
            path = requests.SERVICES.path(self.namespace)
            found: Any = await self.around.client.send(requests.get(path))
            env = {**services_env(found["items"]), **env}
        return env

    def _rewrite(self, text: str) -> str:
        return self.around.options.rewrite(text, self.namespace)

    def changed(self) -> None:
        self.changed_at = datetime.now(UTC)
        self.change.set()

    def tell(self, reason: str, message: str, container: str = "", *, warning: bool = False) -> None:
        self.around.events.tell(self.manifest, reason, message, container, warning=warning)

    def missing(self, error: MissingObject) -> str:
        kind = {"configMap": "ConfigMap", "secret": "Secret"}[error.kind]
        if error.key:
            return f"couldn't find key {error.key} in {kind} {self.namespace}/{error.name}"
        return f'{kind.lower()} "{error.name}" not found'


def _has_run(status: Manifest) -> bool:
    state = status.get("state") or {}
    return bool(status.get("lastState")) or "running" in state or "terminated" in state


def _exited(found: Manifest | None) -> Exited | None:
    if not found:
        return None
    started, finished = (datetime.fromisoformat(str(found[key])) for key in ("startedAt", "finishedAt"))
    reason, message = str(found.get("reason", "")), str(found.get("message", ""))
    return Exited(int(found["exitCode"]), started, finished, reason, message)
