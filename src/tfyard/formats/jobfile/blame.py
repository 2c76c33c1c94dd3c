"""Finds the word of the job file that caused a problem in the pod template built from it.

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
"""Field of a mount or volume -> its word in the file; empty: the problem is in the key."""
_FIELDS = {"subPath": "sub_path", "hostPath": "host_path"}


def blamed(problem: Problem, template: Manifest, owners: Owners) -> Problem:
    """The problem with the path of the word that caused it or, if no word did, of the overlay."""
    if is_missing_image(problem):
        return Problem(("image",), "must be given", f"image: {DEFAULT_IMAGE}")
    path = _word(problem, template, owners) or _overlay(problem.path, owners)
    if problem.message == LABEL_RULE and path[-2] == "volumes":  # the name is a key of the file, not a value
        problem = replace(problem, value=UNSET)
    return replace(problem, path=path)


def is_repeated(problem: Problem, template: Manifest) -> bool:
    """Whether the problem is of a request that equals the limit: one word sets both, so the limit has it, too."""
    match problem.path:
        case ("spec", "containers", int(i), "resources", "requests", name):
            limits = template["spec"]["containers"][i]["resources"].get("limits") or {}
            return bool(limits.get(name) == problem.value)
    return False


def is_missing_image(problem: Problem) -> bool:
    """Whether the image is missing in the file: the template then has an empty one."""
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
        case ("spec", "tolerations", int(i), *steps) if not _patches(owners, "tolerations"):
            return _toleration(i, steps, owners)
        case ("spec", "volumes", int(i), "emptyDir", *steps):
            return _scratch(template["spec"]["volumes"][i].get("name"), steps, owners)
        case ("spec", "volumes", int(i), *steps) if tuple(steps) in _OF_VOLUMES:
            name = template["spec"]["volumes"][i].get("name")
            return _volume(name, _OF_VOLUMES[tuple(steps)], problem.value, owners)
    return None


def _volume(name: Any, word: str, value: object, owners: Owners) -> Path | None:
    """Path of the volume's word that has this value, or of the volume itself if its name is the problem."""
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
    """Path of the code's mount path, which is the working directory if there is no `workdir`."""
    code = getattr(owners.get(()), "code", None)
    return ("code", "at") if getattr(code, "at", None) == value else None


def _toleration(i: int, steps: list[Any], owners: Owners) -> Path | None:
    """Path of a toleration: a role's are added to those at the top."""
    for path, own in owners.items():
        if i < len(own.tolerations):
            return (*path, "tolerations", i, *steps)
        i -= len(own.tolerations)
    return None


def _scratch(name: Any, steps: list[Any], owners: Owners) -> Path | None:
    if any(isinstance(patch, dict) and patch.get("name") == name for patch in _patches(owners, "volumes")):
        return None
    return _last(owners, lambda own: name in own.volumes, "volumes", name, "emptyDir", *steps)


def _last(owners: Owners, has: Callable[[PodWords], bool], *steps: Any) -> Path | None:
    """Path in the last owner that has the word: a role's word wins over the one at the top."""
    paths = [path for path, own in owners.items() if has(own)]
    return (*paths[-1], *steps) if paths else None


def _patches(owners: Owners, key: str) -> list[Any]:
    """Items that the overlays have under a key of the pod's spec."""
    specs = [own.overlay.get("spec") for own in owners.values()]
    lists = [spec.get(key) for spec in specs if isinstance(spec, dict)]
    return [item for patches in lists if isinstance(patches, list) for item in patches]


def _overlay(path: Path, owners: Owners) -> Path:
    """Path in the overlay that has most steps of the path; a role's is applied last."""
    owner = max(reversed(owners), key=lambda owner: _depth(owners[owner].overlay, path))
    return (*owner, "overlay", *path)


def _depth(value: Any, path: Path) -> int:
    for depth, step in enumerate(path):
        if not isinstance(value, dict) or step not in value:
            return depth + (isinstance(value, list) and isinstance(step, int) and step < len(value))
        value = value[step]
    return len(path)
