"""Small changes of pod templates. Templates are shared, so each function returns a new one."""

from collections.abc import Callable, Sequence
from typing import Any

from tfyard.model import Manifest, Role, tensorflow_container
from tfyard.model.names import MAX_LABEL

Change = Callable[[Manifest], Manifest]


def change_container(template: Manifest, change: Change) -> Manifest:
    """The template with a changed training container."""
    trains = tensorflow_container(template)
    containers = [change(c) if c is trains else c for c in template["spec"]["containers"]]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def with_command(container: Manifest, command: list[str]) -> Manifest:
    return {**{key: value for key, value in container.items() if key != "args"}, "command": command}


def add_volume(template: Manifest, volume: Manifest, mount: Manifest) -> Manifest:
    """The template with a volume that the training container mounts."""
    template = change_container(template, lambda c: append(c, "volumeMounts", [mount]))
    return {**template, "spec": append(template["spec"], "volumes", [volume])}


def add_init_container(template: Manifest, container: Manifest, *, first: bool = False) -> Manifest:
    spec: Manifest = template["spec"]
    present = spec.get("initContainers") or []
    containers = [container, *present] if first else [*present, container]
    return {**template, "spec": {**spec, "initContainers": containers}}


def append(owner: Manifest, key: str, items: Sequence[Any]) -> Manifest:
    return {**owner, key: [*(owner.get(key) or []), *items]}


def init_container(name: str, template: Manifest, command: list[str], mounts: list[Manifest]) -> Manifest:
    """A short step before the training, in the same image, which the node pulls in any case.

    Resources and security context are those of the training, because clusters with quotas or policies refuse
    containers without them. This costs nothing, because a pod needs only the maximum. Devices are not requested.
    """
    trains = tensorflow_container(template)
    kept: Manifest = {key: trains[key] for key in ("imagePullPolicy", "securityContext") if key in trains}
    resources = {
        part: {k: v for k, v in amounts.items() if k in ("cpu", "memory")}
        for part, amounts in (trains.get("resources") or {}).items()
        if isinstance(amounts, dict)
    }
    resources = {part: amounts for part, amounts in resources.items() if amounts}
    return {
        "name": name,
        "image": trains.get("image", ""),
        "command": command,
        **kept,
        **({"resources": resources} if resources else {}),
        "volumeMounts": mounts,
    }


def python(*words: str) -> list[str]:
    """A command that runs `python3`, or `python` if the image has only that."""
    line = 'exec "$(command -v python3 || command -v python)" "$@"'
    return ["/bin/sh", "-c", line, "python", *words]


def command_of(role: Role) -> list[str]:
    """The role's command and arguments; empty if the image's own entrypoint runs."""
    container = tensorflow_container(role.template)
    return [*container["command"], *(container.get("args") or [])] if container.get("command") else []


def from_config_map(variable: str, config_map: str, key: str) -> Manifest:
    return {"name": variable, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": key}}}


def free_name(name: str, owner: Manifest, taken: dict[str, Manifest], limit: int = MAX_LABEL) -> str:
    """The name, with a number appended if another object has it: each role may call a different volume `data`."""
    free, number = name, 1
    while taken.get(free, owner) != owner:
        number += 1
        end = f"-{number}"
        free = f"{name[: limit - len(end)]}{end}"
    return free
