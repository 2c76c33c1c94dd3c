"""Volumes as directories. What outlives a job on a cluster outlives a run here; scratch space goes with it."""

import re
from pathlib import Path

from tfyard.errors import Usage
from tfyard.model import Manifest

from . import containers
from .containers import Objects
from .linux_namespaces import Mount

LASTING = ("persistentVolumeClaim", "nfs", "azureFile")
TOLD = ("configMap", "secret", "projected", "downwardAPI")
"""Files that tell a task something: nobody changes them, as on a cluster."""


class Volumes:
    """Finds the directory for each volume of a pod; makes it when the pod starts."""

    def __init__(self, lasting: Path, given: dict[str, Path], objects: Objects) -> None:
        self.lasting, self.given, self.objects = lasting, given, objects

    def mounts(self, pod: Manifest, container: Manifest, scratch: Path) -> tuple[Mount, ...]:
        """Where each directory appears in this container. `scratch` belongs to the pod alone."""
        by_name = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
        found = []
        for mount in container.get("volumeMounts") or []:
            volume = by_name.get(mount.get("name"))
            if volume is None:
                text = (
                    f"{mount.get('mountPath')} mounts the volume {mount.get('name')}, which is not declared"
                )
                raise Usage(text)
            source = self.directory(volume, scratch) / str(mount.get("subPath") or "").lstrip("/")
            read_only = bool(mount.get("readOnly")) or any(kind in volume for kind in TOLD)
            found.append((str(source), str(mount["mountPath"]), read_only))
        return tuple(found)

    def directory(self, volume: Manifest, scratch: Path) -> Path:
        name = volume["name"]
        if name in self.given:
            return self.given[name]
        if path := (volume.get("hostPath") or {}).get("path"):
            return Path(path)
        if kind := next((kind for kind in LASTING if volume.get(kind)), None):
            return self.lasting / lasting_name(kind, volume[kind])
        return scratch / str(name)

    def check(self, pod: Manifest) -> None:
        """Usage if something is mounted that is not here."""
        for volume in pod["spec"].get("volumes") or []:
            _told(volume, pod, self.objects)

    def make(self, pod: Manifest, container: Manifest, scratch: Path) -> None:
        """All that this container's mounts need: directories, and files from ConfigMaps and Secrets."""
        for volume in pod["spec"].get("volumes") or []:
            self.directory(volume, scratch).mkdir(parents=True, exist_ok=True)
            _fill(scratch / volume["name"], volume, pod, self.objects)
        for source, _, _ in self.mounts(pod, container, scratch):
            if not Path(source).exists():
                Path(source).mkdir(parents=True)


def lasting_name(kind: str, source: Manifest) -> str:
    """A claim keeps its name; shares are named after their address."""
    if kind == "persistentVolumeClaim":
        return str(source.get("claimName"))
    address = f"{source.get('server')}{source.get('path')}" if kind == "nfs" else str(source.get("shareName"))
    return f"{kind}-{re.sub(r'[^A-Za-z0-9.]+', '-', address).strip('-')}"


def is_known(volume: Manifest) -> bool:
    """Whether the volume is one that this machine can stand in for."""
    kinds = (*LASTING, *TOLD, "hostPath", "emptyDir")
    return any(kind in volume for kind in kinds)


def _fill(directory: Path, volume: Manifest, pod: Manifest, objects: Objects) -> None:
    """ConfigMaps, Secrets and the downward API appear as files."""
    for name, text in _told(volume, pod, objects).items():
        place = directory / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))


def _told(volume: Manifest, pod: Manifest, objects: Objects) -> dict[str, str]:
    """Path -> text of every file in it."""
    sources = (volume.get("projected") or {}).get("sources") or [volume]
    return {name: text for source in sources for name, text in _files(source, pod, objects).items()}


def _files(source: Manifest, pod: Manifest, objects: Objects) -> dict[str, str]:
    for kind, known in (("configMap", objects.config_maps), ("secret", objects.secrets)):
        if reference := source.get(kind):
            name = reference.get("name") or reference.get("secretName")
            data = known.get(name)
            if data is None and not reference.get("optional"):
                raise Usage(f"the job mounts the {kind} {name}, which is not here; put it into the same file")
            return _chosen(data or {}, reference.get("items"))
    items = (source.get("downwardAPI") or {}).get("items") or []
    return {i["path"]: containers.field(pod, i["fieldRef"]["fieldPath"]) for i in items if i.get("fieldRef")}


def _chosen(data: dict[str, str], items: list[Manifest] | None) -> dict[str, str]:
    if not items:
        return data
    return {item["path"]: data[item["key"]] for item in items if item.get("key") in data}
