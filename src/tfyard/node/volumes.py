"""Volumes as directories. Claims and network shares are kept between pods; scratch space is of one pod."""

import os
import re
from pathlib import Path

from tfyard.model import Manifest

from . import containers
from .containers import ContainerConfigError, MissingObject, Objects
from .linux_namespaces import Mount

LASTING = ("persistentVolumeClaim", "nfs", "azureFile")
READ_ONLY = ("configMap", "secret", "projected", "downwardAPI")
"""Files that are written for the pod, and that it cannot change, as on a cluster."""


class Volumes:
    """Finds the directory for each volume of a pod, and makes it when the pod starts.

    `lasting`: where claims and network shares are; `given`: the directory for a volume, by its name.
    """

    def __init__(self, lasting: Path, given: dict[str, Path], objects: Objects) -> None:
        self.lasting, self.given, self.objects = lasting, given, objects

    def mounts(self, pod: Manifest, container: Manifest, scratch: Path) -> tuple[Mount, ...]:
        """Where each directory appears in this container. `scratch` belongs to the pod alone."""
        by_name = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
        found = []
        for mount in container.get("volumeMounts") or []:
            volume = by_name.get(mount.get("name"))
            if volume is None:
                text = f"{mount.get('mountPath')} mounts the volume {mount.get('name')}"
                raise ContainerConfigError(f"{text}, which is not declared")
            source = inside(self.directory(volume, scratch), str(mount.get("subPath") or ""))
            read_only = bool(mount.get("readOnly")) or any(kind in volume for kind in READ_ONLY)
            found.append((str(source), str(mount["mountPath"]), read_only))
        return tuple(found)

    def directory(self, volume: Manifest, scratch: Path) -> Path:
        name = volume["name"]
        if name in self.given:
            return self.given[name]
        if path := (volume.get("hostPath") or {}).get("path"):
            return Path(path)
        if kind := next((kind for kind in LASTING if volume.get(kind)), None):
            return inside(self.lasting, lasting_name(kind, volume[kind]))
        return inside(scratch, str(name))

    def check(self, pod: Manifest) -> None:
        """MissingObject if a ConfigMap or Secret is mounted that does not exist; ContainerConfigError if one of
        its keys is a path that leaves the volume."""
        for volume in pod["spec"].get("volumes") or []:
            for path in _contents(volume, pod, self.objects):
                inside(self.lasting, path)

    def make(self, pod: Manifest, container: Manifest, scratch: Path) -> None:
        """What this container's mounts need: directories, and files from ConfigMaps and Secrets."""
        for volume in pod["spec"].get("volumes") or []:
            self.directory(volume, scratch).mkdir(parents=True, exist_ok=True)
            _fill(scratch / volume["name"], volume, pod, self.objects)
        for source, _, _ in self.mounts(pod, container, scratch):
            if not Path(source).exists():
                Path(source).mkdir(parents=True)


def inside(directory: Path, path: str) -> Path:
    """The path in the directory; ContainerConfigError if it would leave it. Manifests may come from anywhere."""
    found = directory / path
    if ".." in Path(path).parts or not found.is_relative_to(directory) or "\0" in path:
        raise ContainerConfigError(f"the path {path!r} leaves its volume")
    return found


def lasting_name(kind: str, source: Manifest) -> str:
    """A claim keeps its name; shares are named after their address."""
    if kind == "persistentVolumeClaim":
        return str(source.get("claimName"))
    address = f"{source.get('server')}{source.get('path')}" if kind == "nfs" else str(source.get("shareName"))
    return f"{kind}-{re.sub(r'[^A-Za-z0-9.]+', '-', address).strip('-')}"


def is_known(volume: Manifest) -> bool:
    """Whether a directory of this machine can replace the volume."""
    kinds = (*LASTING, *READ_ONLY, "hostPath", "emptyDir")
    return any(kind in volume for kind in kinds)


def remove(directory: Path) -> None:
    """With all that is in it, also where a program has taken away the right to, as Go does with its modules."""
    from shutil import rmtree  # slow to import, and rarely needed

    try:
        rmtree(directory)
    except PermissionError:
        directory.chmod(0o700)
        for folder, names, _ in os.walk(directory):  # from the top: each is opened before it is entered
            for path in (Path(folder, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        rmtree(directory)


def _fill(directory: Path, volume: Manifest, pod: Manifest, objects: Objects) -> None:
    """ConfigMaps, Secrets and the downward API appear as files."""
    for name, text in _contents(volume, pod, objects).items():
        file = inside(directory, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))


def _contents(volume: Manifest, pod: Manifest, objects: Objects) -> dict[str, str]:
    """Path -> text of every file in it."""
    sources = (volume.get("projected") or {}).get("sources") or [volume]
    return {name: text for source in sources for name, text in _files(source, pod, objects).items()}


def _files(source: Manifest, pod: Manifest, objects: Objects) -> dict[str, str]:
    for kind, known in (("configMap", objects.config_maps), ("secret", objects.secrets)):
        if reference := source.get(kind):
            name = reference.get("name") or reference.get("secretName")
            data = known.get(name)
            if data is None and not reference.get("optional"):
                raise MissingObject(kind, name)
            return _chosen(data or {}, reference.get("items"))
    items = (source.get("downwardAPI") or {}).get("items") or []
    return {i["path"]: containers.field(pod, i["fieldRef"]["fieldPath"]) for i in items if i.get("fieldRef")}


def _chosen(data: dict[str, str], items: list[Manifest] | None) -> dict[str, str]:
    if not items:
        return data
    return {item["path"]: data[item["key"]] for item in items if item.get("key") in data}
