"""Volumes of the job file <-> Kubernetes' volumes and mounts."""

from typing import Any

from tfyard.formats.declarations.reading import Notes, Path
from tfyard.formats.pods.volumes import NOT_ABSOLUTE
from tfyard.model import Manifest
from tfyard.model.names import DNS_LABEL

from .. import quantities
from .words import VolumeWords

SOURCES = {
    "nfs": "nfs",
    "claim": "claim",
    "azure_file": "azureFile",
    "host_path": "hostPath",
    "empty_dir": "emptyDir",
    "config_map": "configMap",
    "secret": "secret",
}
"""Field of VolumeWords -> its word in the file."""


def check(name: str, words: VolumeWords, path: Path, notes: Notes) -> None:
    """Checks everything about a volume that cannot be checked in the pod template."""
    sources = [word for field, word in SOURCES.items() if getattr(words, field) is not None]
    if len(sources) != 1:
        text = f"has {len(sources)} sources ({', '.join(sources)})" if sources else "has no source"
        notes.error(path, f"volume {name} {text}", f"give exactly one of {', '.join(SOURCES.values())}")
    if words.nfs is not None and ":/" not in words.nfs:
        notes.error(
            (*path, "nfs"), "must be an NFS export", 'for example "10.0.0.5:/exports/data"', words.nfs
        )
    if not words.at.startswith("/"):
        notes.error((*path, "at"), NOT_ABSOLUTE, f'for example "/{words.at}"', words.at)
    if words.size is None and (words.storage_class or words.access):
        notes.error((*path, "size"), "must be given to create the claim", "for example size: 5Gi")
    if words.size is not None:
        notes.extend(quantities.problems(words.size, (*path, "size")))
    if words.size is not None and words.claim is None:
        notes.error((*path, "size"), "must be used with a claim", f"add claim: {name}")


def source(words: VolumeWords) -> Manifest:
    if words.nfs is not None:
        server, _, export = words.nfs.partition(":/")  # not ":", which an IPv6 address contains
        return {"nfs": {"server": server, "path": f"/{export}"}}
    if words.claim is not None:
        return {"persistentVolumeClaim": {"claimName": words.claim}}
    if words.azure_file is not None:
        return {"azureFile": {"secretName": words.azure_file.secret, "shareName": words.azure_file.share}}
    if words.host_path is not None:
        return {"hostPath": {"path": words.host_path}}
    if words.config_map is not None:
        return {"configMap": {"name": words.config_map}}
    if words.secret is not None:
        return {"secret": {"secretName": words.secret}}
    return {"emptyDir": words.empty_dir or {}}


def volume(name: str, words: VolumeWords) -> Manifest:
    return {"name": name, **source(words)}


def mount(name: str, words: VolumeWords) -> Manifest:
    mount: Manifest = {"name": name, "mountPath": words.at}
    if words.sub_path:
        mount["subPath"] = words.sub_path
    if words.read_only:
        mount["readOnly"] = True
    return mount


def claim(words: VolumeWords, namespace: str) -> Manifest:
    """The claim to create; by default ReadWriteMany, because the tasks share it."""
    spec: Manifest = {
        "accessModes": [words.access or "ReadWriteMany"],
        "resources": {"requests": {"storage": words.size}},
    }
    if words.storage_class is not None:
        spec["storageClassName"] = words.storage_class
    metadata = {"name": words.claim, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def claim_words(spec: Manifest | None) -> dict[str, Any]:
    """Words that create this claim; empty for a claim that must already exist."""
    if spec is None:
        return {}
    words: dict[str, Any] = {"size": spec["resources"]["requests"]["storage"]}
    words |= {"storageClass": spec["storageClassName"]} if "storageClassName" in spec else {}
    return words | ({"access": spec["accessModes"][0]} if spec["accessModes"] != ["ReadWriteMany"] else {})


def words_for(volume: Manifest, mount: Manifest) -> dict[str, Any] | None:
    """Words for a volume and its mount, or None if the job file cannot express them."""
    extras = set(mount) - {"name", "mountPath", "subPath", "readOnly"}
    is_odd = extras or len(volume) != 2 or not DNS_LABEL.fullmatch(volume["name"])
    words = None if is_odd else _source_words(volume)
    if words is None or not mount["mountPath"].startswith("/"):
        return None
    words["at"] = mount["mountPath"]
    words |= {key: mount[key] for key in ("subPath", "readOnly") if mount.get(key)}
    return words


def _source_words(volume: Manifest) -> dict[str, Any] | None:
    match {key: value for key, value in volume.items() if key != "name"}:
        case {"nfs": {"server": server, "path": path, **others}} if not others and path.startswith("/"):
            return {"nfs": f"{server}:{path}"}
        case {"persistentVolumeClaim": {"claimName": name, **others}} if not others:
            return {"claim": name}
        case {"azureFile": {"secretName": secret, "shareName": share, **others}} if not others:
            return {"azureFile": {"share": share, "secret": secret}}
        case {"hostPath": {"path": path, **others}} if not others:
            return {"hostPath": path}
        case {"emptyDir": settings}:
            return {"emptyDir": settings or {}}
        case {"configMap": {"name": name, **others}} if not others:
            return {"configMap": name}
        case {"secret": {"secretName": name, **others}} if not others:
            return {"secret": name}
    return None
