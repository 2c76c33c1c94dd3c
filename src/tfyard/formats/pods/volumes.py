"""Rules for a pod's volumes and mounts: what Kubernetes or its nodes refuse, and paths that would leave their
volume."""

import re
from collections.abc import Iterator

from tfyard.formats.declarations.reading import Notes, Path
from tfyard.model import Manifest
from tfyard.model.names import DNS_LABEL, OBJECT_NAME
from tfyard.model.spelling import closest

LABEL_RULE = "must be lower-case letters, digits and '-', and not start or end with '-'"
NOT_ABSOLUTE = "must be an absolute path"
HIDES_ALL = "must not be /: it would hide the container's own files"
_FILES = ("configMap", "secret", "downwardAPI")
"""Volumes of files that may set the path of each file (`items`)."""


def check(spec: Manifest, path: Path, notes: Notes) -> None:
    """Checks all volumes, mounts and working directories of a pod."""
    volumes = spec.get("volumes") or []
    check_volumes(volumes, (*path, "volumes"), notes)
    names = names_of(volumes)
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(kind) or []):
            inside: Path = (*path, kind, i)
            check_mounts(container.get("volumeMounts") or [], names, (*inside, "volumeMounts"), notes)
            check_absolute(container.get("workingDir"), (*inside, "workingDir"), notes)


def check_volumes(volumes: list[Manifest], path: Path, notes: Notes) -> None:
    seen = set()
    for i, volume in enumerate(volumes):
        name = str(volume.get("name"))
        check_label(name, (*path, i, "name"), notes)
        if name in seen:
            text = "must be unique: another volume has this name"
            notes.error((*path, i, "name"), text, "rename one of the two", name)
        seen.add(name)
        _check_source(volume, (*path, i), notes)


def names_of(volumes: list[Manifest]) -> dict[str, None]:
    """Names of the volumes in their order, and quick to look up."""
    return dict.fromkeys(str(volume.get("name")) for volume in volumes)


def check_mounts(mounts: list[Manifest], names: dict[str, None], path: Path, notes: Notes) -> None:
    """`names` are those of the pod's volumes."""
    seen: dict[str, str] = {}
    for i, mount in enumerate(mounts):
        name, at = str(mount.get("name")), str(mount.get("mountPath"))
        if name not in names:
            best = closest(name, names)
            fix = f'did you mean "{best}"?' if best else "add it to the volumes, or remove this mount"
            notes.error((*path, i, "name"), f"the volume {name} is not declared", fix, name)
        _check_mount_path(at, seen, (*path, i, "mountPath"), notes)
        seen.setdefault(normal(at), name)
        for key in ("subPath", "subPathExpr"):
            check_inside(mount.get(key), (*path, i, key), notes)


def check_label(name: str, path: Path, notes: Notes) -> None:
    """Names of volumes and containers are parts of paths on the node."""
    if not DNS_LABEL.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63]
        notes.error(path, LABEL_RULE, f'for example "{better}"' if better else "", name)


def check_absolute(value: str | None, path: Path, notes: Notes) -> None:
    if value and not value.startswith("/"):
        notes.error(path, NOT_ABSOLUTE, f'for example "/{value.removeprefix("./")}"', value)


def check_inside(value: str | None, path: Path, notes: Notes) -> None:
    """Checks a path inside a volume."""
    if value and (value.startswith("/") or _leaves(value)):
        text = "must be a path inside the volume: relative, without '..'"
        better = "/".join(part for part in value.split("/") if part not in ("", ".", ".."))
        notes.error(path, text, f'for example "{better}"' if better else "remove it", value)


def normal(path: str) -> str:
    """The normal form of a path: `/data/` and `//data` become `/data`."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def _check_mount_path(at: str, seen: dict[str, str], path: Path, notes: Notes) -> None:
    if normal(at) == "/":
        notes.error(path, HIDES_ALL, 'for example "/data"', at)
    elif normal(at) in seen:
        text = f"must be unique: the volume {seen[normal(at)]} is mounted at this path"
        notes.error(path, text, "choose another path for one of the two", at)


def _check_source(volume: Manifest, path: Path, notes: Notes) -> None:
    host = (volume.get("hostPath") or {}).get("path")
    check_absolute(host, (*path, "hostPath", "path"), notes)
    if host and _leaves(host):
        notes.error((*path, "hostPath", "path"), "must not contain '..'", "write the path without it", host)
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if claim is not None and not OBJECT_NAME.fullmatch(claim):
        text = "must be the name of a claim: lower-case letters, digits, '-' and '.'"
        better = re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")
        where: Path = (*path, "persistentVolumeClaim", "claimName")
        notes.error(where, text, f'for example "{better}"' if better else "", claim)
    for where, chosen in _chosen_paths(volume):
        check_inside(chosen, (*path, *where), notes)


def _chosen_paths(volume: Manifest) -> Iterator[tuple[Path, str | None]]:
    """Paths that a volume sets for its files, each with its field."""
    sources: list[tuple[Path, Manifest]] = [((), volume)]
    projected = (volume.get("projected") or {}).get("sources") or []
    sources += [(("projected", "sources", i), source) for i, source in enumerate(projected)]
    for path, source in sources:
        for kind in _FILES:
            for i, item in enumerate((source.get(kind) or {}).get("items") or []):
                yield (*path, kind, "items", i, "path"), item.get("path")


def _leaves(path: str) -> bool:
    return ".." in path.split("/")
