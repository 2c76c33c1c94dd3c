"""The process of every container, made by the code that starts it: checked before a run, printed by a dry run."""

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
from tfyard.local.prepared import Prepared
from tfyard.model import Create, Job, Manifest, Observed, Task
from tfyard.node import linux_namespaces
from tfyard.node.containers import ContainerConfigError, MissingObject, NoCommand, Objects
from tfyard.node.processes import Command


class Planned(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container that would be started."""

    task: str
    container: str
    python: str
    """What `python` is."""
    is_init: bool
    directory: str
    env: dict[str, str]
    """Its own; it also gets the environment of tfyard."""
    command: list[str]
    mounts: dict[str, str]
    """Mount path -> directory."""


def check(prepared: Prepared) -> None:
    """Usage if a process cannot be made."""
    here = _machine(prepared)
    for pod in _pods(prepared):
        for container, command in _commands(here, pod, private_view=False):
            _check_directory(here, task_of(pod), container, command)


def planned(prepared: Prepared) -> list[Planned]:
    """In the order of their start. Values of Secrets are replaced by the names of their keys."""
    here = _machine(replace(prepared, objects=_hidden(prepared.objects)))
    here = replace(here, variables=here.variables | _hidden_variables(prepared.job, here.variables))
    view, python = linux_namespaces.is_allowed(), prepared.python.path
    return [
        _planned(pod, container, command, here.base_env, python)
        for pod in _pods(prepared)
        for container, command in _commands(here, pod, private_view=view)
    ]


def _machine(prepared: Prepared) -> Machine:
    return machine(prepared, Path.cwd() / run_directory.HOME / "runs" / "RUN")


def _pods(prepared: Prepared) -> list[Manifest]:
    decision = planner.decide(prepared.job, Observed(), prepared.site, datetime.now(UTC))
    return [a.manifest for a in decision.actions if isinstance(a, Create) and a.kind == "Pod"]


def _commands(here: Machine, pod: Manifest, *, private_view: bool) -> list[tuple[Manifest, Command]]:
    node, adapted = here.node(lambda _event: None), here.adapted(pod, task_of(pod))
    try:
        here.volumes.check(pod)
        return [
            (container, node.command(adapted, container, here.volumes, private_view=private_view))
            for container in (*adapted["spec"]["initContainers"], *adapted["spec"]["containers"])
        ]
    except ContainerConfigError as error:
        raise Usage(f"{error}{_fix(error)}") from None


def _planned(
    pod: Manifest, container: Manifest, command: Command, inherited: Mapping[str, str], python: str
) -> Planned:
    inits = [init["name"] for init in pod["spec"].get("initContainers") or ()]
    return Planned(
        task=task_of(pod).name,
        container=container["name"],
        python=python,
        is_init=container["name"] in inits,
        directory=command.cwd,
        env={name: value for name, value in command.env.items() if inherited.get(name) != value},
        command=command.argv,
        mounts={path: directory for directory, path, _ in command.mounts},
    )


def _hidden(objects: Objects) -> Objects:
    secrets = {name: {key: _key(name, key) for key in secret} for name, secret in objects.secrets.items()}
    return replace(objects, secrets=secrets)


def _hidden_variables(job: Job, variables: dict[str, str]) -> dict[str, str]:
    """Of `--env`, those that replace a value from a Secret."""
    return {name: key for role in job.roles for name, key in _secret_keys(role.template) if name in variables}


def _secret_keys(template: Manifest) -> Iterator[tuple[str, str]]:
    """Variable -> the key that it has its value from."""
    spec = template["spec"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for entry in container.get("env") or ():
            if reference := (entry.get("valueFrom") or {}).get("secretKeyRef"):
                yield entry["name"], _key(reference.get("name"), reference.get("key"))


def _key(secret: str, key: str) -> str:
    return f"<secret {secret}/{key}>"


def _check_directory(here: Machine, task: Task, container: Manifest, command: Command) -> None:
    asked = container["workingDir"]
    if asked is None:
        return  # it gets a directory of its own
    is_code = here.code is not None and Path(asked).is_relative_to(
        here.code.folder
    )  # it may not be fetched yet
    if command.cwd == asked and not is_code and not Path(asked).is_dir():  # volumes are made later
        text = f"{task.name}: the working directory {asked} is in the image, and images are not used here"
        raise Usage(f"{text}; say where your code is (job file: code, see `tfyard convert`), or remove it")


def _fix(error: ContainerConfigError) -> str:
    match error:
        case NoCommand():
            where = "after `--`, as in `tfyard run FILE -- python train.py`"
            return f"; give it {where}, or in the file (job file: run, TFJob: command)"
        case MissingObject(variable=""):
            return "; put it into the same file"
        case MissingObject(variable=name):
            return f"; put it into the same file, or give --env {name}=VALUE"
    return ""
