"""Where the code of a job in the cluster is, what it consists of, and how to get it back."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from tfyard.errors import TfyardError, Usage
from tfyard.file_trees import Copied
from tfyard.kube import Access, NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest, tensorflow_container
from tfyard.model import names as label
from tfyard.overview import table
from tfyard.overview.wording import size
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.render import CodeFile
from tfyard.render.code import LAYERS, ON_CLAIM, files_of

KEPT_NAME = re.compile(rf"[0-9a-f]{{32}}|{LAYERS}/[0-9a-f]{{16}}")


class CodeLocation(Struct, frozen=True, kw_only=True):
    kind: Literal["config-map", "claim", "fetched", "image"]
    name: str = ""
    """Name of the ConfigMap or the claim, or the address that each task fetches the code from."""
    hash: str = ""
    at: str = ""
    """Path of the code in the tasks."""
    sub_path: str = ""
    """Folder on the claim."""
    is_git: bool = False

    def __str__(self) -> str:
        match self.kind:
            case "config-map":
                return f"the ConfigMap {self.name}"
            case "claim":
                return f"the claim {self.name}, folder {self.sub_path}"
            case "fetched":
                return f"{self.name}, from where each task fetches it"
        return "the image"


class ListedFile(Struct, frozen=True):
    path: str
    size: int


def location(tfjob: StoredTFJob) -> CodeLocation:
    """Code of the first role that mounts it; also for a job that was rendered."""
    annotations = tfjob.manifest["metadata"].get("annotations") or {}
    template: Manifest = next((each for each in templates(tfjob.manifest) if _mount(each)), {})
    volumes = {each["name"]: each for each in (template.get("spec") or {}).get("volumes") or []}
    mount = _mount(template)
    at, digest = str(mount.get("mountPath") or ""), str(annotations.get(label.CODE) or "")
    if claim := (volumes.get(label.CODE_VOLUME) or {}).get("persistentVolumeClaim"):
        sub_path = str(mount.get("subPath") or "")
        return CodeLocation(kind="claim", name=claim["claimName"], hash=digest, at=at, sub_path=sub_path)
    for volume in (volumes.get(f"{label.CODE_VOLUME}-source") or {}, volumes.get(label.CODE_VOLUME) or {}):
        if config_map := volume.get("configMap"):
            address = _address(template)
            kind: Literal["fetched", "config-map"] = "fetched" if address else "config-map"
            return CodeLocation(kind=kind, name=address or config_map["name"], hash=digest, at=at)
    if not mount:
        return CodeLocation(kind="image")
    address = _address(template)
    return CodeLocation(kind="fetched", name=address, at=at, is_git=bool(address))


def kept_on_claims(templates: Iterable[Manifest]) -> set[str]:
    """Names that these pods use in the folder for code on a claim: hashes, and packages as `packages/NAME`."""
    names = set[str]()
    for spec in (each.get("spec") or {} for each in templates):
        for container in (*(spec.get("initContainers") or []), *(spec.get("containers") or [])):
            names |= _kept_for(container)
    return {name for name in names if KEPT_NAME.fullmatch(name)}


def templates(manifest: Manifest) -> list[Manifest]:
    """Pod templates of a TFJob."""
    roles: dict[str, Manifest] = (manifest.get("spec") or {}).get("tfReplicaSpecs") or {}
    return [each.get("template") or {} for each in roles.values()]


def _kept_for(container: Manifest) -> set[str]:
    """Packages are installed by an init container, whose last word is the name of their layer."""
    paths = [str(each.get("subPath") or "") for each in container.get("volumeMounts") or []]
    words = container.get("command") or [""]
    inside = {path.removeprefix(f"{ON_CLAIM}/") for path in paths if path.startswith(f"{ON_CLAIM}/")}
    return {f"{LAYERS}/{words[-1]}" if each == LAYERS else each for each in inside}


def files(client: SyncClient, tfjob: StoredTFJob, where: CodeLocation) -> list[CodeFile]:
    """Files of code in a ConfigMap."""
    try:
        config_map = client.send(requests.get(requests.CONFIG_MAPS.path(tfjob.namespace, where.name)))
    except NotFound:
        raise TfyardError(f"the code of {tfjob.name} is gone: there is no ConfigMap {where.name}") from None
    return files_of(config_map)


def listed(client: SyncClient, tfjob: StoredTFJob, where: CodeLocation) -> list[ListedFile]:
    """Files of code in a ConfigMap; empty for a claim, which only a pod can read."""
    if where.kind != "config-map":
        return []
    return [ListedFile(file.path, len(file.data)) for file in files(client, tfjob, where)]


def lines(where: CodeLocation, files: Sequence[ListedFile]) -> list[str]:
    """Text of `describe --code`."""
    text = [f"Code:   in {where}"]
    text += [f"At:     {where.at} in each task"] if where.at else []
    text += [f"Hash:   {where.hash}"] if where.hash else []
    if not files:
        return text
    text += [f"Files:  {len(files)}, {size(sum(each.size for each in files))}", ""]
    rows = [(size(each.size), each.path) for each in files]
    return text + [f"  {line}" for line in table.lines([("SIZE", "FILE"), *rows])]


def copy(access: Access, tfjob: StoredTFJob, to: Path) -> Copied:
    """Code in a ConfigMap becomes the folder `to`."""
    with SyncClient(access) as client:
        got = files(client, tfjob, location(tfjob))
    write(got, to)
    return Copied(to=str(to), files=len(got), size=sum(len(file.data) for file in got))


def write(files: Sequence[CodeFile], to: Path) -> None:
    """Writes all files or none: a file that exists with other content is not overwritten."""
    targets = {to / _inside(file.path): file for file in files}
    taken = [path for path, file in targets.items() if _is_other(path, file.data)]
    if taken:
        more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
        names = ", ".join(map(str, taken[:3]))
        raise Usage(f"{names}{more}: there already, with other content; give an empty folder")
    for path, file in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)


def require(where: CodeLocation, job: str) -> None:
    """Raises Usage if the cluster does not keep the code."""
    if where.kind == "image":
        raise Usage(
            f"{job} has its code in its image: `tfyard cp {job}:/PATH DIR` copies from a running task"
        )
    if where.kind == "fetched":
        raise Usage(f"each task of {job} fetches its code from {where.name}")


def _mount(template: Manifest) -> Manifest:
    mounts: Iterable[Manifest] = tensorflow_container(template).get("volumeMounts") or []
    return next((each for each in mounts if each.get("name") == label.CODE_VOLUME), {})


def _address(template: Manifest) -> str:
    """Address that tfyard's init container fetches; empty if it unpacks what came with the job."""
    for each in template["spec"].get("initContainers") or []:
        words = each.get("command") or []
        if each.get("name") == label.CODE_VOLUME and "git" in words:
            return str(words[words.index("git") + 1])
        if each.get("name") == label.CODE_VOLUME and any(word.endswith("/fetch.py") for word in words):
            return str(next(word for word in words if word.startswith(("http://", "https://"))))
    return ""


def _inside(path: str) -> PurePosixPath:
    parsed = PurePosixPath(path)
    if parsed.is_absolute() or ".." in parsed.parts:
        raise TfyardError(f"the code has a file {path!r}, which would be outside of the folder")
    return parsed


def _is_other(path: Path, data: bytes) -> bool:
    return os.path.lexists(path) and not (path.is_file() and path.read_bytes() == data)
