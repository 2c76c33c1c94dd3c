"""Small changes to a role's pod template. Templates are shared, so each returns a new one."""

from collections.abc import Callable, Sequence
from typing import Any

from tfyard.model import Manifest, Role, tensorflow_container

Change = Callable[[Manifest], Manifest]


def change_container(template: Manifest, change: Change) -> Manifest:
    """The template with the container that trains changed."""
    trains = tensorflow_container(template)
    containers = [change(c) if c is trains else c for c in template["spec"]["containers"]]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def add_volume(template: Manifest, volume: Manifest, mount: Manifest) -> Manifest:
    """A volume, mounted where the training is."""
    template = change_container(template, lambda c: extended(c, "volumeMounts", [mount]))
    return {**template, "spec": extended(template["spec"], "volumes", [volume])}


def add_init(template: Manifest, container: Manifest, *, first: bool = False) -> Manifest:
    spec: Manifest = template["spec"]
    there = spec.get("initContainers") or []
    return {
        **template,
        "spec": {**spec, "initContainers": [container, *there] if first else [*there, container]},
    }


def extended(owner: Manifest, key: str, items: Sequence[Any]) -> Manifest:
    return {**owner, key: [*(owner.get(key) or []), *items]} if items else owner


def helper(name: str, template: Manifest, command: list[str], mounts: list[Manifest]) -> Manifest:
    """A short step before the training, in the same image: it is on the node anyway.

    Resources and security are the training's own, since clusters with quotas or policies refuse containers
    without; a pod's needs are the larger of both, so it costs nothing. A device is not asked for.
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


def command_of(role: Role) -> list[str]:
    """What the role runs, in full; empty where the image's own entrypoint does."""
    container = tensorflow_container(role.template)
    return [*container["command"], *(container.get("args") or [])] if container.get("command") else []


def from_config_map(variable: str, config_map: str, key: str) -> Manifest:
    return {"name": variable, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": key}}}
