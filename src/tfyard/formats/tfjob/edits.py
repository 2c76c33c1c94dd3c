"""Changes of a TFJob as a cluster has it, of either form: a map of roles, or v1alpha1's list.

They are values: the same ones are sent to the server as a patch, and made in a copy.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from msgspec import Struct

from tfyard.formats.declarations.reading import Path
from tfyard.model import MASTER, Manifest, tensorflow_container
from tfyard.model.expansion import escape

from .fields import canonical


class Edit(Struct, frozen=True):
    """Sets a field. What it is in must exist."""

    path: Path
    value: Any


class StoredRole(Struct, frozen=True):
    path: Path
    spec: Manifest

    @property
    def replicas(self) -> int:
        given = self.spec.get("replicas")
        return 1 if given is None else int(given)


def has_list(manifest: Manifest) -> bool:
    """Whether its roles are v1alpha1's list, which knows no run policy but the clean-up of pods."""
    return "replicaSpecs" in (manifest.get("spec") or {})


def roles(manifest: Manifest) -> dict[str, StoredRole]:
    """By their names, such as Worker."""
    spec = manifest.get("spec") or {}
    listed = enumerate(spec.get("replicaSpecs") or [])
    old = ((each.get("tfReplicaType") or MASTER, ("spec", "replicaSpecs", i), each) for i, each in listed)
    mapped = (spec.get("tfReplicaSpecs") or {}).items()
    new = ((name, ("spec", "tfReplicaSpecs", name), each) for name, each in mapped)
    return {canonical(name) or name: StoredRole(path, each) for name, path, each in (*old, *new)}


def is_suspended(manifest: Manifest) -> bool:
    return any(policy.get("suspend") for _, policy in _policies(manifest))


def suspended(manifest: Manifest) -> list[Edit]:
    """Not for a list of roles."""
    if "runPolicy" in manifest["spec"]:
        return [Edit(("spec", "runPolicy", "suspend"), True)]
    return [Edit(("spec", "runPolicy"), {"suspend": True})]


def resumed(manifest: Manifest) -> list[Edit]:
    """`suspend` in either of them suspends a job."""
    return [Edit((*path, "suspend"), False) for path, policy in _policies(manifest) if policy.get("suspend")]


def scaled(manifest: Manifest, counts: Mapping[str, int]) -> list[Edit]:
    """Of roles that the job has."""
    known = roles(manifest)
    return [Edit((*known[name].path, "replicas"), count) for name, count in counts.items()]


def with_variables(manifest: Manifest, variables: Mapping[str, str]) -> list[Edit]:
    """Of the container that trains, in every role that has one."""
    found = []
    for role in roles(manifest).values() if variables else ():
        containers = ((role.spec.get("template") or {}).get("spec") or {}).get("containers")
        if containers:
            chosen = tensorflow_container(role.spec["template"])
            path = (*role.path, "template", "spec", "containers", containers.index(chosen), "env")
            found.append(Edit(path, _set(chosen.get("env") or [], variables)))
    return found


def edited(manifest: Manifest, edits: Iterable[Edit]) -> Manifest:
    copy = deepcopy(manifest)
    for edit in edits:
        owner: Any = copy
        for step in edit.path[:-1]:
            owner = owner[step]
        owner[edit.path[-1]] = edit.value
    return copy


def patch(edits: Iterable[Edit]) -> list[Manifest]:
    """As a JSON Patch: a merge patch would replace a list as a whole."""
    return [{"op": "add", "path": _pointer(edit.path), "value": edit.value} for edit in edits]


def _policies(manifest: Manifest) -> list[tuple[Path, Manifest]]:
    spec = manifest.get("spec") or {}
    return [(("spec",), spec), (("spec", "runPolicy"), spec.get("runPolicy") or {})]


def _set(entries: list[Manifest], variables: Mapping[str, str]) -> list[Manifest]:
    """In the order in which they were: a variable may refer to those before it."""
    new = {name: {"name": name, "value": escape(value)} for name, value in variables.items()}
    kept = [new.pop(entry.get("name", ""), entry) for entry in entries]
    return [*kept, *new.values()]


def _pointer(path: Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
