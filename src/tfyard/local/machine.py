"""This machine as the node of a run: directories, environment, GPUs, and the planner's pods as they run here."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from tfyard.backends.local import run_directory
from tfyard.backends.local.node import FileSources, LocalNode, NodeEvent
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import code, gpus, started_by_user
from tfyard.local.gpus import Shares
from tfyard.local.prepared import PreparedRun
from tfyard.local.settings import SOURCE_VARIABLE
from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Task, tensorflow_container
from tfyard.model.expansion import escape
from tfyard.model.names import CODE_VOLUME, PORT_NAME
from tfyard.node import interpreter
from tfyard.node.containers import mentions, rewrite
from tfyard.node.interpreter import Interpreter
from tfyard.node.node import NodeOptions
from tfyard.planner.pods import program_text

_KINDS = ("initContainers", "containers")


class CodeMount(Struct, frozen=True):
    """The code keeps its own path here, so that tracebacks name files that exist, and relative paths are those of
    its folder. It is mounted too, because a program may have the cluster's path in it."""

    folder: Path
    at: str

    def working_directory(self, asked: str | None, containers: Sequence[Manifest]) -> str:
        """Working directory of one of the pod's containers."""
        if self._is_hidden or self._is_mentioned(containers):
            return asked or str(self.folder)
        return rewrite(asked or self.at, {self.at: str(self.folder)})

    @property
    def _is_hidden(self) -> bool:
        """Whether the mount would cover the folder itself."""
        return self.folder.is_relative_to(self.at)

    def _is_mentioned(self, containers: Sequence[Manifest]) -> bool:
        """Whether a command, a variable or the path of another mount has the path of this mount in it."""
        mounts = [mount for container in containers for mount in container.get("volumeMounts") or ()]
        texts = [*map(program_text, containers), *(str(mount.get("mountPath")) for mount in mounts)]
        return any(mentions(text, self.at) for text in texts)


class Machine(Struct, frozen=True, kw_only=True):
    directory: Path
    """Directory of the run: logs and scratch space."""
    sources: FileSources
    base_env: Mapping[str, str]
    variables: dict[str, str] = {}
    """Variables of --env."""
    gpus: Shares = {}
    ports: Mapping[Task, int] = {}
    """Port on which each task listens."""
    code: CodeMount | None = None
    tf1: bool = False
    started_by_user: frozenset[str] = frozenset()
    """Tasks that the user starts."""
    input_of: str = ""
    """Name of the container that has our standard input."""
    use_cgroups: bool = True

    def node(self, on_event: Callable[[NodeEvent], None] = lambda _event: None) -> LocalNode:
        has = {"cpu": str(len(os.sched_getaffinity(0))), "memory": str(memory())}
        args = self.directory, self.base_env, on_event, self.sources
        options = NodeOptions(allocatable=has, input_of=self.input_of)
        return LocalNode(*args, options=options, use_cgroups=self.use_cgroups)

    def adapted(self, pod: Manifest, task: Task) -> Manifest:
        """The planner's pod with what only a run here adds: variables, GPUs, the code as a volume, and the network
        of this machine, in which each task listens on a port of its own."""
        spec, defaults = pod["spec"], gpus.variables(self.gpus, task)
        volumes = [*(spec.get("volumes") or ()), *self._code_volume()]
        containers = [container for kind in _KINDS for container in spec.get(kind) or ()]
        parts = {
            kind: [
                self._container(_listening(c, self.ports.get(task)), defaults, containers)
                for c in spec.get(kind) or ()
            ]
            for kind in _KINDS
        }
        adapted = {**pod, "spec": {**spec, "hostNetwork": True, "volumes": volumes, **parts}}
        return self._with_tf1(adapted) if self.tf1 else adapted

    def _with_tf1(self, pod: Manifest) -> Manifest:
        from tfyard.render import tf1  # 10 ms with render/, and few jobs are of TensorFlow 1

        return tf1.with_folder(pod, str(tf1.FOLDER), self.base_env.get(tf1.VARIABLE, ""))

    def left_to_user(self, pod: Manifest, task: Task, node: LocalNode) -> Manifest:
        """A pod that waits for the task, if the user starts it. The user sees the whole disk, so mount paths
        become directories."""
        if task.name not in self.started_by_user:
            return pod
        commands = {container["name"]: command for container, command in node.plan(pod, private_view=False)}
        containers = [
            started_by_user.waiting(container, commands[TENSORFLOW_CONTAINER], self.directory, task.name)
            if container["name"] == TENSORFLOW_CONTAINER
            else container
            for container in pod["spec"]["containers"]
        ]
        return {**pod, "spec": {**pod["spec"], "containers": containers}}

    def _code_volume(self) -> list[Manifest]:
        return [{"name": CODE_VOLUME, "hostPath": {"path": str(self.code.folder)}}] if self.code else []

    def _container(
        self, container: Manifest, defaults: Mapping[str, str], containers: Sequence[Manifest]
    ) -> Manifest:
        """`defaults`: variables that the container may set otherwise. `containers`: all containers of the pod."""
        asked = container.get("workingDir")
        own = {entry["name"] for entry in container.get("env") or ()}
        env = {name: value for name, value in defaults.items() if name not in own} | self.variables
        mount = [{"name": CODE_VOLUME, "mountPath": self.code.at}] if self.code else []
        return {
            **container,
            "env": _with(container.get("env") or [], env),
            "volumeMounts": [*(container.get("volumeMounts") or ()), *mount],
            "workingDir": self.code.working_directory(asked, containers) if self.code else asked,
        }


def _with(entries: list[Manifest], env: Mapping[str, str]) -> list[Manifest]:
    """Adds `env`: its values win over the container's, also in variables that use them, and are not expanded."""
    added = {name: {"name": name, "value": escape(value)} for name, value in env.items()}
    own = [added.get(entry["name"], entry) for entry in entries]
    return own + [entry for entry in added.values() if entry not in own]


_LISTENING = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def _listening(container: Manifest, port: int | None) -> Manifest:
    """The container with the port that its task has here, where it names the one that it has on a cluster."""
    named = [
        entry["containerPort"] for entry in container.get("ports") or () if entry.get("name") == PORT_NAME
    ]
    if port is None or not named:
        return container
    parts = {key: container[key] for key in _LISTENING if key in container}
    return {**container, **_replaced(parts, named[0], port)}


def _replaced(part: Any, declared: int, here: int) -> Any:
    if isinstance(part, list):
        return [_replaced(each, declared, here) for each in part]
    if not isinstance(part, dict):
        return part
    is_port = {key: key in ("port", "containerPort") and value == declared for key, value in part.items()}
    return {key: here if is_port[key] else _replaced(value, declared, here) for key, value in part.items()}


def memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine(prepared: PreparedRun, directory: Path) -> Machine:
    job, settings = prepared.job, prepared.settings
    folder = code.folder(job.code, prepared.file.parent, directory / "code") if job.code else None
    return Machine(
        directory=directory,
        sources=FileSources(Path.cwd() / run_directory.HOME / "volumes", prepared.mounts, prepared.objects),
        base_env=base_env(prepared.python, directory),
        variables=settings.variables | _source_variable(prepared, directory),
        gpus={} if gpus.VARIABLE in settings.variables else _share_gpus(prepared),
        ports=prepared.site.ports,
        code=CodeMount(folder, job.code.at) if job.code and folder else None,
        tf1=job.tf1,
        started_by_user=frozenset(settings.attach),
        input_of=_training_container(job) if prepared.reader else "",
    )


def _training_container(job: Job) -> str:
    """Name of the container that trains, in a job with one task."""
    (role,) = (role for role in job.roles if role.replicas)
    return str(tensorflow_container(role.template)["name"])


def _source_variable(prepared: PreparedRun, directory: Path) -> dict[str, str]:
    has_sources = bool(prepared.settings.sources)
    return {SOURCE_VARIABLE: str(RunDirectory(directory).source)} if has_sources else {}


def _share_gpus(prepared: PreparedRun) -> Shares:
    return gpus.share(prepared.job, gpus.visible(), sharing=prepared.settings.share_gpus)


def base_env(python: Interpreter, directory: Path) -> dict[str, str]:
    """Environment of tfyard, as a shell would pass it on, with this `python`. Python's output is not buffered, so
    that log lines appear at once. `directory`: that of the run."""
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    path = interpreter.search_path(python, own.get("PATH", os.defpath), shims(directory))
    return {"PYTHONUNBUFFERED": "1", **own, "HOSTNAME": socket.gethostname(), "PATH": path}


def shims(directory: Path) -> Path:
    """Folder for programs called `python`, if the chosen interpreter has another name."""
    return directory / "bin"
