"""Commands of all containers, built by the code that starts them: checked before a run, printed by a dry run."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import planner
from tfyard.backends.local import run_directory
from tfyard.backends.local.runner import task_of
from tfyard.errors import Usage
from tfyard.local.machine import Machine, machine
from tfyard.local.prepared import PreparedRun
from tfyard.model import Create, Job, Manifest, Observed, Task
from tfyard.node import linux_namespaces
from tfyard.node.containers import NoCommand
from tfyard.node.pod_data import ContainerConfigError, MissingObject, Objects
from tfyard.node.processes import ContainerCommand
from tfyard.node.volumes import VolumeError


class Planned(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container that would be started."""

    task: str
    container: str
    python: str
    """Interpreter that `python` starts."""
    is_init: bool
    directory: str
    env: dict[str, str]
    """Variables of the container itself; it also gets the environment of tfyard."""
    command: list[str]
    mounts: dict[str, str]
    """Mount path -> directory."""


def check(prepared: PreparedRun) -> None:
    """Raises Usage if a process cannot be started."""
    here = _machine(prepared)
    for pod in _pods(prepared):
        for container, command in _commands(here, pod, private_view=False):
            _check_directory(here, task_of(pod), container, command)
            _check_variables(task_of(pod), command)


def planned(prepared: PreparedRun) -> list[Planned]:
    """Containers in the order of their start, with the names of keys in place of the values of Secrets."""
    here = _machine(replace(prepared, objects=_hidden(prepared.objects)))
    here = replace(here, variables=here.variables | _hidden_variables(prepared.job, here.variables))
    view, python = linux_namespaces.is_allowed(), prepared.python.path
    return [
        _planned(pod, container, command, here.base_env, python)
        for pod in _pods(prepared)
        for container, command in _commands(here, pod, private_view=view)
    ]


def _machine(prepared: PreparedRun) -> Machine:
    return machine(prepared, Path.cwd() / run_directory.HOME / "runs" / "RUN")


def _pods(prepared: PreparedRun) -> list[Manifest]:
    decision = planner.decide(prepared.job, Observed(), prepared.site, datetime.now(UTC))
    return [a.manifest for a in decision.actions if isinstance(a, Create) and a.kind == "Pod"]


def _commands(here: Machine, pod: Manifest, *, private_view: bool) -> list[tuple[Manifest, ContainerCommand]]:
    try:
        return here.node().plan(here.adapted(pod, task_of(pod)), private_view=private_view)
    except (ContainerConfigError, VolumeError) as error:
        cause = error.__cause__ if isinstance(error.__cause__, ContainerConfigError) else error
        raise Usage(f"{cause}{_fix(cause)}") from None


def _planned(
    pod: Manifest, container: Manifest, command: ContainerCommand, inherited: Mapping[str, str], python: str
) -> Planned:
    inits = [init["name"] for init in pod["spec"].get("initContainers") or ()]
    mounted = {mount["mountPath"] for mount in container.get("volumeMounts") or ()}
    return Planned(
        task=task_of(pod).name,
        container=container["name"],
        python=python,
        is_init=container["name"] in inits,
        directory=command.cwd,
        env={name: value for name, value in command.env.items() if inherited.get(name) != value},
        command=command.argv,
        mounts={path: directory for directory, path, _ in command.mounts if path in mounted},
    )


def _hidden(objects: Objects) -> Objects:
    secrets = {name: {key: _key(name, key) for key in secret} for name, secret in objects.secrets.items()}
    return replace(objects, secrets=secrets)


def _hidden_variables(job: Job, variables: dict[str, str]) -> dict[str, str]:
    """Variables of --env that replace a value from a Secret -> the name of its key."""
    return {name: key for role in job.roles for name, key in _secret_keys(role.template) if name in variables}


def _secret_keys(template: Manifest) -> Iterator[tuple[str, str]]:
    """Pairs of a variable and the key of a Secret that it gets its value from."""
    spec = template["spec"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for entry in container.get("env") or ():
            if reference := (entry.get("valueFrom") or {}).get("secretKeyRef"):
                yield entry["name"], _key(reference.get("name"), reference.get("key"))


def _key(secret: str, key: str) -> str:
    return f"<secret {secret}/{key}>"


def _check_directory(here: Machine, task: Task, container: Manifest, command: ContainerCommand) -> None:
    asked = container["workingDir"]
    if asked is None:
        return  # the container gets a directory of its own
    is_code = here.code is not None and Path(asked).is_relative_to(
        here.code.folder
    )  # the code may not be fetched yet
    if command.cwd == asked and not is_code and not Path(asked).is_dir():  # volumes are made later
        text = f"{task.name}: the working directory {asked} is in the image, and images are not used here"
        raise Usage(f"{text}; say where your code is (job file: code, see `tfyard convert`), or remove it")


def _check_variables(task: Task, command: ContainerCommand) -> None:
    """Linux starts no program with such variables, and would not say which."""
    for name, value in command.env.items():
        if not name or "=" in name or "\0" in name:
            raise Usage(
                f"{task.name}: {name!r} cannot be the name of a variable: it has a `=` or a NUL, or is empty"
            )
        if "\0" in value:
            raise Usage(f"{task.name}: the value of the variable {name} has a NUL character; remove it")


def _fix(error: Exception) -> str:
    match error:
        case NoCommand():
            where = "after `--`, as in `tfyard run FILE -- python train.py`"
            return f"; give it {where}, or in the file (job file: run, TFJob: command)"
        case MissingObject(variable=""):
            return "; put it into the same file"
        case MissingObject(variable=name):
            return f"; put it into the same file, or give --env {name}=VALUE"
    return ""
