"""The machine as a PodRunner: keeps the pods of one job, and gives them processes, directories and logs."""

import asyncio
import signal
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import (
    TENSORFLOW_CONTAINER,
    Action,
    Create,
    Delete,
    DeleteJob,
    Job,
    Manifest,
    Observed,
    Outcome,
    Status,
    Task,
)
from tfyard.model.names import REPLICA_INDEX, REPLICA_TYPE
from tfyard.model.quantity import amount

from . import cgroups, containers
from .containers import Objects, rewrite
from .linux_namespaces import Mount
from .logs import tail
from .pod import Container, LocalPod
from .processes import Command, Exit, Processes
from .volumes import Volumes


class Machine(Struct, frozen=True, kw_only=True):
    """How this machine stands in for a node."""

    directory: Path
    """The run's own: logs and scratch space."""
    volumes: Volumes
    objects: Objects
    base_env: Mapping[str, str]
    """What every process has to begin with: ours, as a shell would pass it on."""
    extra_env: Callable[[Task], Mapping[str, str]] = lambda _task: {}
    """What only a run here adds: `--env`, and the GPUs of the task."""
    code: Mount | None = None
    make_group: Callable[[str, int], cgroups.Group] | None = None
    """Makes control groups for memory limits, where that is allowed."""
    attached: frozenset[str] = frozenset()
    """Tasks that the user starts by hand, under a debugger say."""

    @property
    def scratch(self) -> Path:
        """Directories of pods that nobody else sees; they go with the run."""
        return self.directory / "scratch"


class Started(Struct, frozen=True):
    """A container has begun, and where it writes."""

    task: str
    container: str
    start: int
    log: Path


class Ended(Struct, frozen=True):
    started: Started
    exit: Exit
    reason: str
    is_stopped: bool
    """It ended because it was asked to, not by itself."""


class Kubelet:
    def __init__(self, machine: Machine, tell: Callable[[Started | Ended], None]) -> None:
        self.machine, self.tell = machine, tell
        self.pods: dict[str, LocalPod] = {}
        self.status = Status()
        self.change = asyncio.Event()
        self.is_deleted = False
        self.processes = Processes(machine.directory / "supervisor.log", self._exited)
        self._containers: dict[str, tuple[LocalPod, Container]] = {}
        self._started: dict[str, Started] = {}
        self._asked_to_stop: set[str] = set()
        self._groups: dict[str, cgroups.Group] = {}
        self.mapping: dict[str, str] = {}
        """Mount paths that were rewritten, and into what."""
        self._starts: dict[str, int] = {}

    # What the spine asks for.

    async def observe(self, job: Job) -> Observed:  # noqa: ARG002
        for name in [name for name, pod in self.pods.items() if pod.is_gone]:
            del self.pods[name]
        return Observed(status=self.status, pods=tuple(pod.observed() for pod in self.pods.values()))

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        roles = {role.name.lower(): role.name for role in job.roles}
        for action in actions:
            match action:
                case Create(manifest) if manifest["kind"] == "Pod":
                    self._create(manifest, roles)
                case Delete("Pod", name, force=force) if name in self.pods:
                    self.pods[name].stop(force=force)
                case DeleteJob():
                    self.is_deleted = True
        return Outcome(done=tuple(actions))

    # What the run asks for.

    def pids(self) -> dict[int, tuple[str, str]]:
        """Process id -> (container id, task), for whoever measures them."""
        known = self.processes.pids.items()
        return {pid: (id, self._containers[id][0].task.name) for id, pid in known if id in self._containers}

    def memory_limits(self) -> dict[str, float]:
        """Container id -> its limit in bytes, for those whom no control group limits."""
        found = {id: _memory_limit(container.spec) for id, (_, container) in self._containers.items()}
        return {id: limit for id, limit in found.items() if limit is not None and id not in self._groups}

    def running(self) -> list[LocalPod]:
        return [pod for pod in self.pods.values() if any(c.is_running for c in pod.everyone)]

    def stop_all(self, *, force: bool) -> None:
        for pod in list(self.pods.values()):
            pod.stop(force=force)

    def evict(self, task: str) -> bool:
        found = [pod for pod in self.running() if pod.task.name == task]
        for pod in found:
            pod.evict()
        return bool(found)

    def kill_for_memory(self, id: str) -> None:
        """As the kernel does to a container beyond its limit."""
        if id in self._containers:
            self._containers[id][1].reason = "OOMKilled"
            self.processes.signal(id, signal.SIGKILL)

    # What a pod asks for (pod.Host).

    def changed(self) -> None:
        self.change.set()

    def later(self, delay: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(delay, call)

    def launch(self, pod: LocalPod, container: Container) -> None:
        id = f"{pod.name}/{pod.uid}/{container.name}/{container.starts}"
        self._containers[id] = (pod, container)
        started = self._started[id] = self._log_for(pod.task.name, container.name)
        self.machine.scratch.mkdir(mode=0o700, exist_ok=True)  # Secrets are among it
        self.machine.volumes.make(pod.manifest, container.spec, self._scratch(pod.task, pod.uid))
        command = self.command(pod.manifest, pod.task, container.spec, pod.uid)
        if pod.task.name in self.machine.attached and container.name == TENSORFLOW_CONTAINER:
            command = self._waiting(command, pod.task.name)
        self.processes.start(id, self._limited(id, command, container), started.log)
        self.tell(started)

    def ask_to_stop(self, pod: LocalPod, container: Container, *, force: bool) -> None:
        ids = [id for id, owner in self._containers.items() if owner == (pod, container)]
        for id in ids:
            self._asked_to_stop.add(id)
            self.processes.signal(id, signal.SIGKILL if force else signal.SIGTERM)
            if not force:
                self.later(pod.grace, lambda id=id: self._kill(id))  # type: ignore[misc]

    def command(self, manifest: Manifest, task: Task, container: Manifest, uid: str) -> Command:
        """The process that this container is here: the kubelet's rules, then this machine's ways."""
        env = containers.environment(manifest, container, self.machine.objects)
        env |= self.machine.extra_env(task)
        argv = containers.argv(container, env)
        mounts = self.machine.volumes.mounts(manifest, container, self._scratch(task, uid))
        mounts += (self.machine.code,) if self.machine.code else ()
        cwd = str(container.get("workingDir") or (self.machine.code or (str(Path.cwd()),))[0])
        # An attached task is started by the user, in the user's own view of the disk.
        if mounts and (task.name in self.machine.attached or not self.processes.namespaces):
            mapping = {target: source for source, target, _ in mounts}
            self.mapping |= mapping
            argv, cwd = [rewrite(part, mapping) for part in argv], rewrite(cwd, mapping)
            env = {name: rewrite(value, mapping) for name, value in env.items()}
            mounts = ()
        return Command(argv=argv, env={**self.machine.base_env, **env}, cwd=cwd, mounts=mounts)

    def _limited(self, id: str, command: Command, container: Container) -> Command:
        limit = _memory_limit(container.spec)
        if limit is None or self.machine.make_group is None:
            return command
        group = self._groups[id] = self.machine.make_group(f"tfyard-{id.replace('/', '-')}", int(limit))
        return replace(command, cgroup=group.procs)

    def _scratch(self, task: Task, uid: str) -> Path:
        """Each attempt begins with empty scratch space, as a new pod would."""
        return self.machine.scratch / f"{task.name}-{uid}"

    def _create(self, manifest: Manifest, roles: dict[str, str]) -> None:
        labels = manifest["metadata"]["labels"]
        task = Task(roles[labels[REPLICA_TYPE]], int(labels[REPLICA_INDEX]))
        pod = LocalPod(manifest, task, uuid.uuid4().hex[:8], self)
        if pod.name not in self.pods:
            self.pods[pod.name] = pod
            pod.begin()

    def _exited(self, id: str, exit: Exit) -> None:
        if id not in self._containers:
            return  # a helper of the run (TensorBoard), no task
        pod, container = self._containers.pop(id)
        started = self._started.pop(id)
        if id in self._groups and self._groups.pop(id).close():
            container.reason = "OOMKilled"
        pod.exited(container, exit.code, tail(started.log) if exit.code else "")
        # Whoever had already ended when it was asked to has ended by itself.
        is_stopped = exit.signalled and id in self._asked_to_stop
        self._asked_to_stop.discard(id)
        self.tell(Ended(started, exit, pod.observed().reason, is_stopped))

    def _kill(self, id: str) -> None:
        if id in self._containers:
            self.processes.signal(id, signal.SIGKILL)

    def _log_for(self, task: str, container: str) -> Started:
        """Every start has a log of its own: what an earlier attempt said is what one looks for later."""
        name = task if container == TENSORFLOW_CONTAINER else f"{task}.{container}"
        start = self._starts[name] = self._starts.get(name, 0) + 1
        log = self.machine.directory / "logs" / f"{name}.{start}.log"
        return Started(task, container, start, log)

    def _waiting(self, command: Command, task: str) -> Command:
        """Instead of the task: a process that waits for the user to have run it, and ends as it did."""
        script, result = (self.machine.directory / f"attach-{task}.{end}" for end in ("sh", "exit"))
        script.write_text(attach_script(command, result))
        script.chmod(0o700)  # it holds whatever is in the environment
        wait = f"import pathlib,sys,time\np=pathlib.Path({str(result)!r})\nwhile not p.exists(): time.sleep(.2)\n"
        argv = [sys.executable, "-c", wait + "sys.exit(int(p.read_text()))"]
        return Command(argv=argv, env=command.env, cwd=command.cwd, mounts=command.mounts)


def has_memory_limit(template: Manifest) -> bool:
    return any(_memory_limit(container) is not None for container in template["spec"].get("containers") or [])


def _memory_limit(container: Manifest) -> float | None:
    limit = amount(((container.get("resources") or {}).get("limits") or {}).get("memory"))
    return None if limit is None else float(limit)


def attach_script(command: Command, result: Path) -> str:
    """A shell script that is the task: environment, directory, program. Arguments given to it come before the
    program, so that `attach.sh gdb --args` debugs it."""
    from shlex import join, quote

    own = {name: value for name, value in command.env.items() if name.isidentifier()}
    exports = "".join(f"export {name}={quote(value)}\n" for name, value in sorted(own.items()))
    end = f'code=$?\necho "$code" > {quote(str(result))}.new && mv {quote(str(result))}.new {quote(str(result))}\n'
    return f'#!/bin/sh\n{exports}cd {quote(command.cwd)} || exit 1\n"$@" {join(command.argv)}\n{end}exit "$code"\n'
