"""The volumes of one pod as directories of this machine, with the files that are written for it."""

import contextlib
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol

from tfyard.errors import TfyardError
from tfyard.model import Manifest
from tfyard.model.expansion import expand
from tfyard.model.quantity import amount

from . import linux_namespaces
from .linux_namespaces import Mount
from .pod_data import WRITTEN, ContainerConfigError, File, Objects, files, token_key

LASTING = ("persistentVolumeClaim", "nfs", "azureFile")
"""Storage that outlives pods."""
KNOWN = (*LASTING, *WRITTEN, "hostPath", "emptyDir", "ephemeral")
CHECKS = {"Directory": (stat.S_ISDIR, "directory"), "File": (stat.S_ISREG, "file")}
CHECKS |= {"Socket": (stat.S_ISSOCK, "socket file"), "CharDevice": (stat.S_ISCHR, "character device")}
CHECKS |= {"BlockDevice": (stat.S_ISBLK, "block device")}


class VolumeError(TfyardError):
    """A volume cannot be mounted at the moment; the message is in a kubelet's words."""


class Sources(Protocol):
    """Source of what pods use and manifests do not contain: an apiserver, or the files of a run."""

    async def objects(self, pod: Manifest, part: Any) -> Objects:
        """The ConfigMaps and Secrets that a part of the manifest names; those that do not exist are left out."""

    async def services(self, pod: Manifest) -> dict[str, str]:
        """Variables with the addresses of Services."""

    async def token(self, pod: Manifest, audience: str, seconds: int) -> str | None:
        """Token of the pod's service account, valid for the next minutes; None: there are no service accounts."""

    async def storage(self, pod: Manifest, volume: Manifest) -> Path | None:
        """Directory of a volume that outlives the pod; None: it does not, or is of no known kind."""


class PodVolumes:
    """Volumes of a pod, in a folder of its own. `may_mount`: this process is in a mount namespace of its own, so
    memory can be mounted as a directory; it goes when this process ends."""

    def __init__(self, sources: Sources, pod: Manifest, folder: Path, *, may_mount: bool) -> None:
        self._sources, self._pod, self._folder, self._may_mount = sources, pod, folder, may_mount
        self._volumes: dict[str, Manifest] = {each["name"]: each for each in pod["spec"].get("volumes") or []}
        self._directories: dict[str, Path] = {}
        self._in_memory: set[Path] = set()

    @property
    def is_limited(self) -> bool:
        return any((each.get("emptyDir") or {}).get("sizeLimit") for each in self._volumes.values())

    async def find(self) -> None:
        """Find the directory of each volume; nothing is made. VolumeError for the first that has none."""
        for name, volume in self._volumes.items():
            with _naming(volume):
                self._directories[name] = await self._directory(volume)

    async def check(self) -> None:
        """Raise VolumeError if the contents of a volume are not available."""
        async for _ in self._files():
            continue

    async def make(self) -> None:
        await self.find()
        for name, volume in self._volumes.items():
            with _naming(volume):
                self._make(volume, self._directories[name])
        await self.refresh()

    async def refresh(self) -> None:
        """Write the files of volumes again, where they have changed: tokens expire."""
        async for volume, contents in self._files():
            with _naming(volume):
                write(self._directories[volume["name"]], contents)

    def mounts(self, container: Manifest, env: dict[str, str], *, make: bool) -> tuple[Mount, ...]:
        """Mounts of directories and files in this container. `make`: create directories that a subPath names."""
        mounts = tuple(self._mount(mount, env) for mount in container.get("volumeMounts") or [])
        for source, _, _ in mounts if make else ():
            if not Path(source).exists():
                Path(source).mkdir(parents=True)
        return mounts

    def find_overfull(self) -> str:
        """Message of a kubelet about an emptyDir that is larger than its limit; empty if none is."""
        for name, volume in self._volumes.items():
            limit = amount((volume.get("emptyDir") or {}).get("sizeLimit"))
            if limit and name in self._directories and disk_use(self._directories[name]) > limit:
                text = volume["emptyDir"]["sizeLimit"]
                return f'Usage of EmptyDir volume "{name}" exceeds the limit "{text}". '
        return ""

    def release(self) -> None:
        """Give back memory, after the containers have ended."""
        while self._in_memory:
            linux_namespaces.unmount(str(self._in_memory.pop()))

    def _mount(self, mount: Manifest, env: dict[str, str]) -> Mount:
        volume = self._volumes.get(str(mount.get("name")))
        if volume is None:
            text = f"{mount.get('mountPath')} mounts the volume {mount.get('name')}"
            raise ContainerConfigError(f"{text}, which is not declared")
        path = expand(str(mount.get("subPathExpr") or ""), env) or str(mount.get("subPath") or "")
        source = inside(self._directories[volume["name"]], path)
        claim = volume.get("persistentVolumeClaim") or {}
        read_only = mount.get("readOnly") or claim.get("readOnly") or any(kind in volume for kind in WRITTEN)
        return str(source), str(mount["mountPath"]), bool(read_only)

    async def _directory(self, volume: Manifest) -> Path:
        if (path := await self._sources.storage(self._pod, volume)) is not None:
            return path
        own = inside(self._folder, str(volume["name"]))
        if host := volume.get("hostPath"):
            return host_path(host, own)
        if not any(kind in volume for kind in KNOWN):
            kinds = ", ".join(key for key in volume if key != "name")
            raise VolumeError(f"volumes of the kind {kinds} are not supported by this node")
        return own

    def _make(self, volume: Manifest, path: Path) -> None:
        if (volume.get("hostPath") or {}).get("type") == "FileOrCreate":
            path.touch()
        elif not path.exists():
            path.mkdir(parents=True)
            if "emptyDir" in volume:
                path.chmod(0o777)
        if (volume.get("emptyDir") or {}).get("medium") == "Memory" and self._may_mount:
            self._mount_memory(path, int(amount(volume["emptyDir"].get("sizeLimit")) or 0))

    def _mount_memory(self, directory: Path, size: int) -> None:
        """Mount memory as large as the limit, else half of the machine's."""
        if directory not in self._in_memory:
            linux_namespaces.mount_memory(str(directory), size)
            self._in_memory.add(directory)

    async def _files(self) -> AsyncIterator[tuple[Manifest, dict[str, File]]]:
        chosen = [each for each in self._volumes.values() if any(kind in each for kind in WRITTEN)]
        objects = await self._sources.objects(self._pod, chosen)
        for volume in chosen:
            with _naming(volume):
                contents = files(volume, self._pod, objects, await self._tokens(volume))
                for path in contents:
                    inside(self._directories[volume["name"]], path)
            yield volume, contents

    async def _tokens(self, volume: Manifest) -> dict[tuple[str, int], str]:
        """Tokens by audience and lifetime."""
        sources = (volume.get("projected") or {}).get("sources") or []
        keys = [token_key(each["serviceAccountToken"]) for each in sources if each.get("serviceAccountToken")]
        tokens = {key: await self._sources.token(self._pod, *key) for key in keys}
        return {key: token for key, token in tokens.items() if token is not None}


@contextlib.contextmanager
def _naming(volume: Manifest) -> Iterator[None]:
    """Name the volume in errors, as a kubelet's events do."""
    try:
        yield
    except (TfyardError, OSError) as error:
        message = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
        raise VolumeError(message) from error


def inside(directory: Path, path: str) -> Path:
    """The path in the directory; ContainerConfigError if it would leave it. Manifests may come from anywhere."""
    target = directory / path
    if ".." in Path(path).parts or not target.is_relative_to(directory) or "\0" in path:
        raise ContainerConfigError(f"the path {path!r} leaves its volume")
    return target


def lasting_name(kind: str, source: Manifest) -> str:
    """Folder name of a claim, which is its name, or of a share, which is named after its address."""
    if kind == "persistentVolumeClaim":
        return str(source.get("claimName"))
    address = f"{source.get('server')}{source.get('path')}" if kind == "nfs" else str(source.get("shareName"))
    return f"{kind}-{re.sub(r'[^A-Za-z0-9.]+', '-', address).strip('-')}"


def is_known(volume: Manifest) -> bool:
    """Whether a directory of this machine can replace the volume."""
    return any(kind in volume for kind in KNOWN)


def host_path(source: Manifest, instead: Path) -> Path:
    """A directory or file of this machine. One that does not exist and has no declared type, such as drivers of
    another machine, is not created: `instead` is an empty directory for this pod alone."""
    path, kind = Path(source["path"]), str(source.get("type") or "")
    check, name = CHECKS.get(kind.removesuffix("OrCreate"), (None, ""))
    is_made_later = kind.endswith("OrCreate") and not path.exists()
    if check is not None and not is_made_later and not (path.exists() and check(path.stat().st_mode)):
        raise VolumeError(f"hostPath type check failed: {path} is not a {name}")
    return path if path.exists() or is_made_later else instead


def write(directory: Path, contents: dict[str, File]) -> None:
    """Replace each file at once, so that no reader finds half of one; remove all others."""
    for path, file in contents.items():
        target = inside(directory, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != file.data:
            new = target.with_name(f"..{target.name}")
            new.write_bytes(file.data)
            new.chmod(file.mode)
            new.rename(target)
    for root, _, names in os.walk(directory):
        for name in names:
            if str(Path(root, name).relative_to(directory)) not in contents:
                Path(root, name).unlink()


def disk_use(directory: Path) -> int:
    """Bytes on the disk, as a kubelet counts them; files that vanish meanwhile do not count."""
    total = 0
    for root, folders, names in os.walk(directory):
        for name in (*folders, *names):
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118
    return total


def remove(directory: Path) -> None:
    """Remove a directory with its contents, also those that a program made read-only, as Go does with modules."""
    try:
        rmtree(directory)
    except PermissionError:
        directory.chmod(0o700)
        for folder, names, _ in os.walk(directory):  # from the top: each is opened before it is entered
            for path in (Path(folder, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        rmtree(directory)
