"""Which word of the file made what is wrong in a pod template that was built of its words."""

from collections.abc import Callable
from typing import Any

from tfyard.formats.declarations.reading import Path
from tfyard.model import Manifest

from .words import PodWords


def word(path: Path, template: Manifest, owners: dict[Path, PodWords]) -> Path | None:
    """Where the word stands, or None for what came by an overlay. `owners`: the top's words before a role's."""
    match path:
        case ("spec", "tolerations", int(i), *rest) if not _patches(owners, "tolerations"):
            return _toleration(i, rest, owners)
        case ("spec", "volumes", int(i), "emptyDir", *rest):
            return _scratch(template["spec"]["volumes"][i].get("name"), rest, owners)
        case ("spec", "containers", _, "env", _):
            return _last(owners, lambda own: "TF_CONFIG" in own.secrets, "secrets", "TF_CONFIG")
    return None


def _toleration(i: int, rest: list[Any], owners: dict[Path, PodWords]) -> Path | None:
    """A role's are added to those at the top."""
    for where, own in owners.items():
        if i < len(own.tolerations):
            return (*where, "tolerations", i, *rest)
        i -= len(own.tolerations)
    return None


def _scratch(name: Any, rest: list[Any], owners: dict[Path, PodWords]) -> Path | None:
    if any(isinstance(patch, dict) and patch.get("name") == name for patch in _patches(owners, "volumes")):
        return None
    return _last(owners, lambda own: name in own.volumes, "volumes", name, "emptyDir", *rest)


def _last(owners: dict[Path, PodWords], has: Callable[[PodWords], bool], *steps: Any) -> Path | None:
    """A role's word wins over the top's."""
    found = [where for where, own in owners.items() if has(own)]
    return (*found[-1], *steps) if found else None


def _patches(owners: dict[Path, PodWords], key: str) -> list[Any]:
    """What the overlays have under a key of the pod's spec."""
    specs = [own.overlay.get("spec") for own in owners.values()]
    lists = [spec.get(key) for spec in specs if isinstance(spec, dict)]
    return [item for found in lists if isinstance(found, list) for item in found]
