"""Which word of the file caused a problem in a pod template that was built from its words.

`owners` are the words at the top of the file and those of the role, in this order, each with its path.
"""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from tfyard.formats.declarations.reading import Path
from tfyard.formats.pods.volumes import LABEL_RULE
from tfyard.model import Manifest, Problem
from tfyard.model.names import DEFAULT_IMAGE

from .words import PodWords

Owners = dict[Path, PodWords]
_OF_MOUNTS = {"mountPath": "at", "subPath": "subPath"}
_OF_VOLUMES: dict[Path, str] = {
    ("name",): "",
    ("persistentVolumeClaim", "claimName"): "claim",
    ("hostPath", "path"): "hostPath",
}
"""Field of a mount or volume -> its word in the file; empty: its key."""
_FIELDS = {"subPath": "sub_path", "hostPath": "host_path"}


def blamed(problem: Problem, template: Manifest, owners: Owners) -> Problem:
    """The problem with the path of the word, or else of the overlay, that caused it."""
    if is_missing_image(problem):
        return Problem(("image",), "must be given", f"image: {DEFAULT_IMAGE}")
    path = _word(problem, template, owners) or _overlay(problem.path, owners)
    if problem.message == LABEL_RULE and path[-2] == "volumes":  # the name is a key of the file, not a value
        problem = replace(problem, value=UNSET)
    return replace(problem, path=path)


def is_repeated(problem: Problem, template: Manifest) -> bool:
    """Of a request that equals the limit, because one word sets both; the limit has the same problem."""
    match problem.path:
        case ("spec", "containers", int(i), "resources", "requests", name):
            limits = template["spec"]["containers"][i]["resources"].get("limits") or {}
            return bool(limits.get(name) == problem.value)
    return False


def is_missing_image(problem: Problem) -> bool:
    """The template has an empty image where the file has none."""
    match problem.path:
        case ("spec", "containers", _, "image"):
            return bool(problem.value == "")
    return False


def _word(problem: Problem, template: Manifest, owners: Owners) -> Path | None:
    match problem.path:
        case ("spec", "containers", _, "resources", _, ("cpu" | "memory") as word):
            return _amount(word, problem.value, owners)
        case ("spec", "containers", _, "env", _):
            return _variable("TF_CONFIG", owners)
        case ("spec", "containers", _, "image"):
            return _last(owners, lambda own: own.image == problem.value, "image")
        case ("spec", "containers", _, "workingDir"):
            own = _last(owners, lambda own: own.workdir == problem.value, "workdir")
            return own or _code_path(problem.value, owners)
        case ("spec", "containers", int(i), "volumeMounts", int(j), key) if key in _OF_MOUNTS:
            name = template["spec"]["containers"][i]["volumeMounts"][j].get("name")
            return _volume(name, _OF_MOUNTS[str(key)], problem.value, owners)
        case ("spec", "tolerations", int(i), *rest) if not _patches(owners, "tolerations"):
            return _toleration(i, rest, owners)
        case ("spec", "volumes", int(i), "emptyDir", *rest):
            return _scratch(template["spec"]["volumes"][i].get("name"), rest, owners)
        case ("spec", "volumes", int(i), *rest) if tuple(rest) in _OF_VOLUMES:
            name = template["spec"]["volumes"][i].get("name")
            return _volume(name, _OF_VOLUMES[tuple(rest)], problem.value, owners)
    return None


def _volume(name: Any, word: str, value: object, owners: Owners) -> Path | None:
    """The word of the volume that has this value; the volume itself if its name is the problem."""
    if not word:
        return _last(owners, lambda own: name in own.volumes, "volumes", name)
    field = _FIELDS.get(word, word)
    return _last(
        owners,
        lambda own: name in own.volumes and getattr(own.volumes[name], field) == value,
        *("volumes", name, word),
    )


def _amount(word: str, value: object, owners: Owners) -> Path | None:
    path = _last(owners, lambda own: bool(getattr(own, word)), word)
    return path if path and value == str(getattr(owners[path[:-1]], word)) else None


def _variable(name: str, owners: Owners) -> Path | None:
    plain = _last(owners, lambda own: name in own.env, "env", name)
    return plain or _last(owners, lambda own: name in own.secrets, "secrets", name)


def _code_path(value: object, owners: Owners) -> Path | None:
    """Without `workdir`, tasks start where the code is mounted."""
    code = getattr(owners.get(()), "code", None)
    return ("code", "at") if getattr(code, "at", None) == value else None


def _toleration(i: int, rest: list[Any], owners: Owners) -> Path | None:
    """A role's are added to those at the top."""
    for path, own in owners.items():
        if i < len(own.tolerations):
            return (*path, "tolerations", i, *rest)
        i -= len(own.tolerations)
    return None


def _scratch(name: Any, rest: list[Any], owners: Owners) -> Path | None:
    if any(isinstance(patch, dict) and patch.get("name") == name for patch in _patches(owners, "volumes")):
        return None
    return _last(owners, lambda own: name in own.volumes, "volumes", name, "emptyDir", *rest)


def _last(owners: Owners, has: Callable[[PodWords], bool], *steps: Any) -> Path | None:
    """A role's word wins over the top's."""
    found = [path for path, own in owners.items() if has(own)]
    return (*found[-1], *steps) if found else None


def _patches(owners: Owners, key: str) -> list[Any]:
    """What the overlays have under a key of the pod's spec."""
    specs = [own.overlay.get("spec") for own in owners.values()]
    lists = [spec.get(key) for spec in specs if isinstance(spec, dict)]
    return [item for found in lists if isinstance(found, list) for item in found]


def _overlay(path: Path, owners: Owners) -> Path:
    """In the overlay into which the path leads deepest; a role's is applied last."""
    owner = max(reversed(owners), key=lambda owner: _depth(owners[owner].overlay, path))
    return (*owner, "overlay", *path)


def _depth(value: Any, path: Path) -> int:
    for depth, step in enumerate(path):
        if not isinstance(value, dict) or step not in value:
            return depth + (isinstance(value, list) and isinstance(step, int) and step < len(value))
        value = value[step]
    return len(path)
