"""Pod templates: rules for their containers, and changes that old templates need to run on today's nodes.

Templates stay plain data. Unknown fields are kept, with a warning: a later Kubernetes release may have them.
"""

from collections.abc import Iterable
from typing import Any

from tfyard.formats import quantities
from tfyard.formats.declarations.reading import Notes, Path
from tfyard.model import DEFAULT_PORT, TENSORFLOW_CONTAINER, Manifest, Problem, Role
from tfyard.model.names import GPU, OLD_GPU, PORT_NAME

from . import checks, images, volumes

_NO_EFFECT = "has no effect: the role's own restartPolicy is used, which is"


def load(template: Manifest, path: Path, notes: Notes) -> Manifest:
    problems = checks.unknown_fields(template, path)
    notes.extend(problems)
    if any(problem.severity == "error" and not quantities.is_about_amount(problem) for problem in problems):
        return {}  # with wrong types, no further check is possible
    spec: Manifest = template.get("spec") or {}
    containers = _containers(template)
    _check_containers(containers, (*path, "spec", "containers"), notes)
    for i, container in enumerate(spec.get("initContainers") or []):
        _check_image(container, (*path, "spec", "initContainers", i), notes)
        volumes.check_label(container["name"], (*path, "spec", "initContainers", i, "name"), notes)
    volumes.check(spec, (*path, "spec"), notes)
    modern = _modern_gpus(spec)
    return {**template, "spec": {**spec, **modern}} if modern else template


def check_restart(role: Role, path: Path, fix: str, notes: Notes) -> None:
    if role.overruled_restart:
        notes.warn((*path, "spec", "restartPolicy"), f"{_NO_EFFECT} {role.restart}", fix)


def without_restarts(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems without those of `check_restart`: the planner warns of them when the job starts."""
    return tuple(problem for problem in problems if not problem.message.startswith(_NO_EFFECT))


def _modern_gpus(spec: Manifest) -> Manifest:
    """The lists of containers with today's name of a GPU in place of that of 2017, which no node offers now."""
    return {
        kind: [_with_modern_gpu(c) for c in spec[kind]]
        for kind in ("initContainers", "containers")
        if any(OLD_GPU in part for c in spec.get(kind) or [] for part in _resources(c))
    }


def port(template: Manifest) -> int:
    """Port of the TensorFlow server: the one named tfjob-port, or else the default."""
    for container in _containers(template):
        if container.get("name") == TENSORFLOW_CONTAINER:
            for entry in container.get("ports") or []:
                number = entry.get("containerPort")
                if entry.get("name") == PORT_NAME and isinstance(number, int):
                    return number
    return DEFAULT_PORT


def with_port(template: Manifest, port_number: int) -> Manifest:
    """The template with the role's port as a named container port, by which v1 finds it."""
    if port(template) == port_number:
        return template
    named = {"name": PORT_NAME, "containerPort": port_number}
    containers = [
        {**container, "ports": [*_other_ports(container, port_number), named]}
        if container.get("name") == TENSORFLOW_CONTAINER
        else container
        for container in _containers(template)
    ]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def _other_ports(container: Manifest, number: int) -> list[Manifest]:
    ports = container.get("ports") or []
    return [p for p in ports if p.get("containerPort") != number and p.get("name") != PORT_NAME]


def _containers(template: Manifest) -> list[Manifest]:
    containers: list[Manifest] = (template.get("spec") or {}).get("containers") or []
    return containers


def _check_containers(containers: list[Manifest], path: Path, notes: Notes) -> None:
    if not containers:
        notes.error(
            path, "must be specified", f"add a container named {TENSORFLOW_CONTAINER}, with its image"
        )
        return
    names = [container.get("name") for container in containers]
    if TENSORFLOW_CONTAINER not in names:
        text = f"must have at least one container with name {TENSORFLOW_CONTAINER}"
        fix = f"name the training container {TENSORFLOW_CONTAINER}: it gets TF_CONFIG"
        notes.error((*path, 0, "name"), text, fix, names[0])
    seen: set[Any] = set()
    for i, container in enumerate(containers):
        if names[i] in seen:
            notes.error(
                (*path, i, "name"),
                "must be unique: another container has this name",
                "rename one of the two",
                names[i],
            )
        seen.add(names[i])
        volumes.check_label(container["name"], (*path, i, "name"), notes)
        _check_image(container, (*path, i), notes)
        _check_ports(container.get("ports") or [], (*path, i, "ports"), notes)
        _check_gpu(container, (*path, i, "resources"), notes)
        if container.get("name") == TENSORFLOW_CONTAINER:
            _check_env(container.get("env") or [], (*path, i, "env"), notes)


def _check_image(container: Manifest, path: Path, notes: Notes) -> None:
    if not container.get("image"):
        wrong = {"value": container["image"]} if "image" in container else {}
        notes.error((*path, "image"), "must be required", "add the image to run", **wrong)
    else:
        images.check(container["image"], (*path, "image"), notes)


def _check_ports(ports: list[Manifest], path: Path, notes: Notes) -> None:
    seen: dict[Any, int] = {}
    for i, entry in enumerate(ports):
        number, protocol = entry.get("containerPort"), entry.get("protocol") or "TCP"
        if not isinstance(number, int) or not 0 < number < 65_536:
            notes.error((*path, i, "containerPort"), "must be a port number, 1 to 65535", "", number)
            continue
        keys: list[Any] = [(number, protocol)] + ([entry["name"]] if entry.get("name") else [])
        if any(key in seen for key in keys):
            notes.error((*path, i), "must be unique: the port is given twice", "keep one of the two", number)
        seen.update(dict.fromkeys(keys, i))


def _check_env(env: list[Manifest], path: Path, notes: Notes) -> None:
    for i, entry in enumerate(env):
        if entry.get("name") == "TF_CONFIG":
            text = "TF_CONFIG is set here, so tfyard does not set it"
            notes.warn((*path, i), text, "remove it: tfyard then sets it for every task")


def _check_gpu(container: Manifest, path: Path, notes: Notes) -> None:
    limits, requests = _resources(container)
    if GPU in requests and GPU not in limits and OLD_GPU not in limits:
        text = "must also be a limit: Kubernetes rejects a GPU request without a limit"
        notes.error((*path, "requests", GPU), text, "move it to resources.limits")


def _resources(container: Manifest) -> tuple[Manifest, Manifest]:
    resources = container.get("resources") or {}
    return resources.get("limits") or {}, resources.get("requests") or {}


def _with_modern_gpu(container: Manifest) -> Manifest:
    """The container with today's name of its GPU, which Kubernetes accepts as a limit only."""
    limits, requests = ({**part} for part in _resources(container))
    counts = [part.pop(OLD_GPU) for part in (limits, requests) if OLD_GPU in part]
    if not counts:
        return container
    limits.setdefault(GPU, counts[0])
    resources = {**(container.get("resources") or {}), "limits": limits, "requests": requests}
    return {**container, "resources": {key: part for key, part in resources.items() if part}}
