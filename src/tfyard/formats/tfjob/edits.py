"""Changes of a TFJob in a cluster, of either form: a map of roles, or v1alpha1's list.

An Edit is a value: it can be sent to the server as a patch, and applied to a copy.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from msgspec import Struct

from tfyard.formats.declarations.reading import Path
from tfyard.model import MASTER, Manifest, tensorflow_container
from tfyard.model.expansion import escape
from tfyard.model.names import CODE_VOLUME

from .fields import canonical


class Edit(Struct, frozen=True):
    """Sets a field, whose parent must exist."""

    path: Path
    value: Any


class StoredRole(Struct, frozen=True):
    path: Path
    spec: Manifest

    @property
    def replicas(self) -> int:
        replicas = self.spec.get("replicas")
        return 1 if replicas is None else int(replicas)


def has_list(manifest: Manifest) -> bool:
    """Whether the roles are v1alpha1's list, which has no run policy except the clean-up of pods."""
    return "replicaSpecs" in (manifest.get("spec") or {})


def roles(manifest: Manifest) -> dict[str, StoredRole]:
    """The roles by their names, such as Worker."""
    spec = manifest.get("spec") or {}
    listed = enumerate(spec.get("replicaSpecs") or [])
    old = ((role.get("tfReplicaType") or MASTER, ("spec", "replicaSpecs", i), role) for i, role in listed)
    mapped = (spec.get("tfReplicaSpecs") or {}).items()
    new = ((name, ("spec", "tfReplicaSpecs", name), role) for name, role in mapped)
    return {canonical(name) or name: StoredRole(path, role) for name, path, role in (*old, *new)}


def is_suspended(manifest: Manifest) -> bool:
    return any(policy.get("suspend") for _, policy in _policies(manifest))


def suspended(manifest: Manifest) -> list[Edit]:
    """Edits that suspend a job; not for v1alpha1's list of roles."""
    if "runPolicy" in manifest["spec"]:
        return [Edit(("spec", "runPolicy", "suspend"), True)]
    return [Edit(("spec", "runPolicy"), {"suspend": True})]


def resumed(manifest: Manifest) -> list[Edit]:
    """Edits that resume a job, under spec and under runPolicy: `suspend` in either of them suspends it."""
    return [Edit((*path, "suspend"), False) for path, policy in _policies(manifest) if policy.get("suspend")]


def scaled(manifest: Manifest, counts: Mapping[str, int]) -> list[Edit]:
    """Edits that set the numbers of tasks of existing roles."""
    known = roles(manifest)
    return [Edit((*known[name].path, "replicas"), count) for name, count in counts.items()]


def with_variables(manifest: Manifest, variables: Mapping[str, str]) -> list[Edit]:
    """Edits that set environment variables of the training container in every role."""
    edits = []
    for role in roles(manifest).values() if variables else ():
        containers = ((role.spec.get("template") or {}).get("spec") or {}).get("containers")
        if containers:
            container = tensorflow_container(role.spec["template"])
            path = (*role.path, "template", "spec", "containers", containers.index(container), "env")
            edits.append(Edit(path, _set(container.get("env") or [], variables)))
    return edits


def with_images(manifest: Manifest, images: Mapping[str, str]) -> list[Edit]:
    """Edits that set the image of the training container of these roles."""
    edits = []
    for name, role in roles(manifest).items():
        containers = ((role.spec.get("template") or {}).get("spec") or {}).get("containers")
        if containers and name in images:
            at = containers.index(tensorflow_container(role.spec["template"]))
            edits.append(Edit((*role.path, "template", "spec", "containers", at, "image"), images[name]))
    return edits


def with_commit(manifest: Manifest, commit: str) -> list[Edit]:
    """Edits that set what tfyard's init containers clone: the last word of their command."""
    edits = []
    for role in roles(manifest).values() if commit else ():
        steps = ((role.spec.get("template") or {}).get("spec") or {}).get("initContainers") or []
        for at, step in enumerate(steps):
            words = step.get("command") or []
            if step.get("name") == CODE_VOLUME and "git" in words:
                path = (*role.path, "template", "spec", "initContainers", at, "command", len(words) - 1)
                edits.append(Edit(path, commit))
    return edits


def edited(manifest: Manifest, edits: Iterable[Edit]) -> Manifest:
    copy = deepcopy(manifest)
    for edit in edits:
        owner: Any = copy
        for step in edit.path[:-1]:
            owner = owner[step]
        owner[edit.path[-1]] = edit.value
    return copy


def patch(edits: Iterable[Edit]) -> list[Manifest]:
    """The edits as a JSON Patch: a merge patch would replace a list as a whole."""
    return [{"op": "add", "path": _pointer(edit.path), "value": edit.value} for edit in edits]


def _policies(manifest: Manifest) -> list[tuple[Path, Manifest]]:
    spec = manifest.get("spec") or {}
    return [(("spec",), spec), (("spec", "runPolicy"), spec.get("runPolicy") or {})]


def _set(entries: list[Manifest], variables: Mapping[str, str]) -> list[Manifest]:
    """The variables with new values, in their order: a variable may refer to those before it."""
    new = {name: {"name": name, "value": escape(value)} for name, value in variables.items()}
    kept = [new.pop(entry.get("name", ""), entry) for entry in entries]
    return [*kept, *new.values()]


def _pointer(path: Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
