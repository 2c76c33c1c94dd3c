"""This machine as the node of a run: its directories, environment and GPUs, and the process of each task."""

import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from tfyard import planner
from tfyard.backends.local import run_directory
from tfyard.backends.local.runner import task_of
from tfyard.errors import Usage
from tfyard.local import attach, code, gpus
from tfyard.local.gpus import Shares
from tfyard.local.prepared import Prepared
from tfyard.model import TENSORFLOW_CONTAINER, Create, Manifest, Observed, Task
from tfyard.node.containers import ContainerConfigError, MissingObject, NoCommand
from tfyard.node.node import Node, NodeEvent
from tfyard.node.processes import Command
from tfyard.node.volumes import Volumes

CODE_VOLUME = "tfyard-code"
_KINDS = ("initContainers", "containers")


class Machine(Struct, frozen=True, kw_only=True):
    directory: Path
    """Of the run: logs and scratch space."""
    volumes: Volumes
    base_env: Mapping[str, str]
    variables: dict[str, str] = {}
    """`--env`."""
    gpus: Shares = {}
    code: tuple[Path, str] | None = None
    """(folder, mount path)."""
    attached: frozenset[str] = frozenset()
    """Tasks that the user starts."""
    use_cgroups: bool = True

    def node(self, on_event: Callable[[NodeEvent], None]) -> Node:
        return Node(self.directory, self.base_env, on_event, use_cgroups=self.use_cgroups)

    def adapted(self, pod: Manifest, task: Task) -> Manifest:
        """The planner's pod with what only a run here adds: variables, GPUs, and the code as a volume."""
        spec, defaults = pod["spec"], gpus.variables(self.gpus, task)
        volumes = [*(spec.get("volumes") or ()), *self._code_volume()]
        parts = {key: [self._container(c, defaults) for c in spec.get(key) or ()] for key in _KINDS}
        return {**pod, "spec": {**spec, "volumes": volumes, **parts}}

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
        return [{"name": CODE_VOLUME, "hostPath": {"path": str(self.code[0])}}] if self.code else []

    def _container(self, container: Manifest, defaults: Mapping[str, str]) -> Manifest:
        """`defaults`: variables that the container may set otherwise."""
        own = {entry["name"] for entry in container.get("env") or ()}
        env = {name: value for name, value in defaults.items() if name not in own} | self.variables
        mount = [{"name": CODE_VOLUME, "mountPath": self.code[1]}] if self.code else []
        return {
            **container,
            "env": _with(container.get("env") or [], env),
            "volumeMounts": [*(container.get("volumeMounts") or ()), *mount],
            "workingDir": container.get("workingDir") or str(self.code[0] if self.code else Path.cwd()),
        }


def _with(entries: list[Manifest], env: Mapping[str, str]) -> list[Manifest]:
    """The values win over a container's own, also for the variables that refer to them; `$$` is a `$`, because
    they are not expanded themselves."""
    added = {name: {"name": name, "value": value.replace("$", "$$")} for name, value in env.items()}
    own = [added.get(entry["name"], entry) for entry in entries]
    return own + [entry for entry in added.values() if entry not in own]


def machine(prepared: Prepared, directory: Path) -> Machine:
    job, settings = prepared.job, prepared.settings
    found = code.folder(job.code, prepared.file.parent, directory / "code") if job.code else None
    return Machine(
        directory=directory,
        volumes=Volumes(Path.cwd() / run_directory.HOME / "volumes", prepared.mounts, prepared.objects),
        base_env=base_env(),
        variables=settings.variables,
        gpus={} if gpus.VARIABLE in settings.variables else _share_gpus(prepared),
        code=(found, job.code.at) if job.code and found else None,
        attached=frozenset(settings.attach),
    )


def _share_gpus(prepared: Prepared) -> Shares:
    return gpus.share(prepared.job, gpus.visible(), sharing=prepared.settings.share_gpus)


def base_env() -> dict[str, str]:
    """Ours, as a shell would pass it on; `python` is the interpreter that runs tfyard, and its output is not
    buffered, because log lines should appear at once."""
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', os.defpath)}"
    return {"PYTHONUNBUFFERED": "1", **own, "PATH": path}


def commands(prepared: Prepared) -> dict[Task, Command]:
    """The process of every task, made by the same code that starts it; Usage if one cannot be made."""
    here = machine(prepared, Path.cwd() / run_directory.HOME / "runs" / "RUN")
    decision = planner.decide(prepared.job, Observed(), prepared.site, datetime.now(UTC))
    pods = [a.manifest for a in decision.actions if isinstance(a, Create) and a.kind == "Pod"]
    return {task_of(pod): _commands(here, pod)[-1] for pod in pods}


def _commands(here: Machine, pod: Manifest) -> list[Command]:
    node, task = here.node(lambda _event: None), task_of(pod)
    adapted = here.adapted(pod, task)
    try:
        here.volumes.check(pod)
        made = [
            (container, node.command(adapted, container, here.volumes))
            for container in (*adapted["spec"]["initContainers"], *adapted["spec"]["containers"])
        ]
    except ContainerConfigError as error:
        raise Usage(f"{error}{_fix(error)}") from None
    for container, command in made:
        _check_directory(here, task, container, command)
    return [command for _, command in made]


def _check_directory(here: Machine, task: Task, container: Manifest, command: Command) -> None:
    asked = container["workingDir"]
    is_code = here.code is not None and asked == str(here.code[0])  # it may not be fetched yet
    if command.cwd == asked and not is_code and not Path(asked).is_dir():  # volumes are made later
        text = f"{task.name}: the working directory {asked} is in the image, and images are not used here"
        raise Usage(f"{text}; say where your code is (job file: code, see `tfyard convert`), or remove it")


def _fix(error: ContainerConfigError) -> str:
    match error:
        case NoCommand():
            return "; give one (job file: run, TFJob: command)"
        case MissingObject(variable=""):
            return "; put it into the same file"
        case MissingObject(variable=name):
            return f"; put it into the same file, or give --env {name}=VALUE"
    return ""
