"""This machine as the node of a run: directories, environment, GPUs, and the planner's pods as they run here."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tfyard.backends.local import run_directory
from tfyard.local import attach, code, gpus, interpreter
from tfyard.local.gpus import Shares
from tfyard.local.interpreter import Interpreter
from tfyard.local.prepared import Prepared
from tfyard.model import TENSORFLOW_CONTAINER, Manifest, Task
from tfyard.model.expansion import escape
from tfyard.node.containers import mentions, rewrite
from tfyard.node.node import Node, NodeEvent
from tfyard.node.volumes import Volumes
from tfyard.planner.pods import program_text

CODE_VOLUME = "tfyard-code"
_KINDS = ("initContainers", "containers")


class CodeMount(Struct, frozen=True):
    """The code keeps its own path here, so that tracebacks name files that exist, and relative paths are those of
    its folder. It is mounted too, because a program may have the cluster's path in it."""

    folder: Path
    at: str

    def working_directory(self, asked: str | None, containers: Sequence[Manifest]) -> str:
        """Of one of the pod's containers."""
        if self._is_hidden or self._is_mentioned(containers):
            return asked or str(self.folder)
        return rewrite(asked or self.at, {self.at: str(self.folder)})

    @property
    def _is_hidden(self) -> bool:
        """The mount would cover the folder itself."""
        return self.folder.is_relative_to(self.at)

    def _is_mentioned(self, containers: Sequence[Manifest]) -> bool:
        """By a command, a variable, or a volume that is mounted inside of it."""
        mounts = [mount for container in containers for mount in container.get("volumeMounts") or ()]
        texts = [*map(program_text, containers), *(str(mount.get("mountPath")) for mount in mounts)]
        return any(mentions(text, self.at) for text in texts)


class Machine(Struct, frozen=True, kw_only=True):
    directory: Path
    """Of the run: logs and scratch space."""
    volumes: Volumes
    base_env: Mapping[str, str]
    variables: dict[str, str] = {}
    """`--env`."""
    gpus: Shares = {}
    code: CodeMount | None = None
    tf1: bool = False
    attached: frozenset[str] = frozenset()
    """Tasks that the user starts."""
    use_cgroups: bool = True

    def node(self, on_event: Callable[[NodeEvent], None]) -> Node:
        return Node(self.directory, self.base_env, on_event, use_cgroups=self.use_cgroups)

    def adapted(self, pod: Manifest, task: Task) -> Manifest:
        """The planner's pod with what only a run here adds: variables, GPUs, and the code as a volume."""
        spec, defaults = pod["spec"], gpus.variables(self.gpus, task)
        volumes = [*(spec.get("volumes") or ()), *self._code_volume()]
        everyone = [container for kind in _KINDS for container in spec.get(kind) or ()]
        parts = {
            kind: [self._container(c, defaults, everyone) for c in spec.get(kind) or ()] for kind in _KINDS
        }
        adapted = {**pod, "spec": {**spec, "volumes": volumes, **parts}}
        return self._with_tf1(adapted) if self.tf1 else adapted

    def _with_tf1(self, pod: Manifest) -> Manifest:
        from tfyard.render import tf1  # slow to import, and rarely needed

        return tf1.with_folder(pod, str(tf1.FOLDER), self.base_env.get(tf1.VARIABLE, ""))

    def attach(self, pod: Manifest, task: Task, node: Node) -> Manifest:
        """If the user starts this task, a pod that waits for it. The user sees the whole disk, so mount paths
        become directories."""
        if task.name not in self.attached:
            return pod
        containers = [
            attach.waiting(
                container,
                node.command(pod, container, self.volumes, private_view=False),
                self.directory,
                task.name,
            )
            if container["name"] == TENSORFLOW_CONTAINER
            else container
            for container in pod["spec"]["containers"]
        ]
        return {**pod, "spec": {**pod["spec"], "containers": containers}}

    def _code_volume(self) -> list[Manifest]:
        return [{"name": CODE_VOLUME, "hostPath": {"path": str(self.code.folder)}}] if self.code else []

    def _container(
        self, container: Manifest, defaults: Mapping[str, str], everyone: Sequence[Manifest]
    ) -> Manifest:
        """`defaults`: variables that the container may set otherwise. `everyone`: all containers of the pod."""
        asked = container.get("workingDir")
        own = {entry["name"] for entry in container.get("env") or ()}
        env = {name: value for name, value in defaults.items() if name not in own} | self.variables
        mount = [{"name": CODE_VOLUME, "mountPath": self.code.at}] if self.code else []
        return {
            **container,
            "env": _with(container.get("env") or [], env),
            "volumeMounts": [*(container.get("volumeMounts") or ()), *mount],
            "workingDir": self.code.working_directory(asked, everyone) if self.code else asked,
        }


def _with(entries: list[Manifest], env: Mapping[str, str]) -> list[Manifest]:
    """The values win over a container's own, also for the variables that refer to them, and are not expanded."""
    added = {name: {"name": name, "value": escape(value)} for name, value in env.items()}
    own = [added.get(entry["name"], entry) for entry in entries]
    return own + [entry for entry in added.values() if entry not in own]


def machine(prepared: Prepared, directory: Path) -> Machine:
    job, settings = prepared.job, prepared.settings
    found = code.folder(job.code, prepared.file.parent, directory / "code") if job.code else None
    return Machine(
        directory=directory,
        volumes=Volumes(Path.cwd() / run_directory.HOME / "volumes", prepared.mounts, prepared.objects),
        base_env=base_env(prepared.python, directory),
        variables=settings.variables,
        gpus={} if gpus.VARIABLE in settings.variables else _share_gpus(prepared),
        code=CodeMount(found, job.code.at) if job.code and found else None,
        tf1=job.tf1,
        attached=frozenset(settings.attach),
    )


def _share_gpus(prepared: Prepared) -> Shares:
    return gpus.share(prepared.job, gpus.visible(), sharing=prepared.settings.share_gpus)


def base_env(python: Interpreter, directory: Path) -> dict[str, str]:
    """Ours, as a shell would pass it on, with this `python`. Its output is not buffered, because log lines should
    appear at once. `directory`: of the run."""
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    path = interpreter.search_path(python, own.get("PATH", os.defpath), shims(directory))
    return {"PYTHONUNBUFFERED": "1", **own, "PATH": path}


def shims(directory: Path) -> Path:
    """Where a run has programs called `python`, if the chosen interpreter has another name."""
    return directory / "bin"
