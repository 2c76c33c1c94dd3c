"""The volumes of one pod as directories of this machine, with what the API says in them."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.kube import Client, NotFound, Resource, requests
from tfyard.kubelet import references
from tfyard.kubelet.pod_data import FROM_API, File, files
from tfyard.model import Manifest
from tfyard.model.expansion import expand
from tfyard.model.quantity import amount
from tfyard.node import linux_namespaces
from tfyard.node.linux_namespaces import Mount
from tfyard.node.volumes import LASTING, inside, lasting_name

CLAIMS = requests.CLAIMS
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
RENEW_AT = 0.8
"""Of a token's life."""
CHECKS = {"Directory": (stat.S_ISDIR, "directory"), "File": (stat.S_ISREG, "file")}
CHECKS |= {"Socket": (stat.S_ISSOCK, "socket file"), "CharDevice": (stat.S_ISCHR, "character device")}
CHECKS |= {"BlockDevice": (stat.S_ISBLK, "block device")}


LONGEST_NAME = 150


def folder_name(namespace: str, name: str, uid: str) -> str:
    """Of a pod or a claim. Names may have 253 characters; a file may have 255, with the namespace and the uid."""
    return f"{namespace}_{name[:LONGEST_NAME]}_{uid}"


class VolumeError(TfyardError):
    """A volume cannot be mounted, now; the message is a kubelet's."""


class Token(Struct, frozen=True):
    text: str
    renew_at: float
    """By the monotonic clock."""


class Shares(Struct, frozen=True):
    """What the volumes of all pods share."""

    folder: Path
    """For network shares."""
    may_mount: bool
    """We are in a mount namespace of our own, so memory can be mounted as a directory; it goes when we end."""


class PodVolumes:
    """`folder` is of this pod alone."""

    def __init__(self, client: Client, pod: Manifest, folder: Path, shares: Shares) -> None:
        self._client, self._pod, self._folder, self._shares = client, pod, folder, shares
        self._namespace = str(pod["metadata"]["namespace"])
        self._volumes: list[Manifest] = pod["spec"].get("volumes") or []
        self._directories: dict[str, Path] = {}
        self._tokens: dict[tuple[str, int], Token] = {}
        self._in_memory: set[Path] = set()

    async def make(self) -> None:
        """Each volume's directory, with its files; VolumeError for the first that cannot be had."""
        for volume in self._volumes:
            self._directories[volume["name"]] = await self._directory(volume)
        await self.refresh()

    async def refresh(self) -> None:
        """Write the files that come from the API again, where they have changed: tokens expire."""
        chosen = [volume for volume in self._volumes if any(kind in volume for kind in FROM_API)]
        objects = await references.fetch(self._client, self._namespace, chosen)
        for volume in chosen:
            tokens = await self._tokens_for(volume)
            with _naming(volume):
                write(self._directories[volume["name"]], files(volume, self._pod, objects, tokens))

    def mounts(self, container: Manifest, env: dict[str, str]) -> tuple[Mount, ...]:
        """Where each directory or file appears in this container."""
        return tuple(self._mount(mount, env) for mount in container.get("volumeMounts") or [])

    def find_overfull(self) -> str:
        """What a kubelet says about an emptyDir that is larger than its limit; empty if none is."""
        for volume in self._volumes:
            limit = amount((volume.get("emptyDir") or {}).get("sizeLimit"))
            directory = self._directories.get(volume["name"])
            if limit and directory and disk_use(directory) > limit:
                given = volume["emptyDir"]["sizeLimit"]
                return f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{given}". '
        return ""

    def release(self) -> None:
        """The containers have ended: give back the memory."""
        while self._in_memory:
            linux_namespaces.unmount(str(self._in_memory.pop()))

    def _mount(self, mount: Manifest, env: dict[str, str]) -> Mount:
        directory = self._directories[mount["name"]]
        source = inside(directory, expand(str(mount.get("subPathExpr") or mount.get("subPath") or ""), env))
        if not source.exists():
            source.mkdir(parents=True)
        volume = next(volume for volume in self._volumes if volume["name"] == mount["name"])
        claim = volume.get("persistentVolumeClaim") or {}
        is_read_only = (
            mount.get("readOnly") or claim.get("readOnly") or any(kind in volume for kind in FROM_API)
        )
        return str(source), str(mount["mountPath"]), bool(is_read_only)

    async def _directory(self, volume: Manifest) -> Path:
        with _naming(volume):
            if claim := volume.get("persistentVolumeClaim"):
                return await self._claim(str(claim["claimName"]))
            if "ephemeral" in volume:
                return await self._claim(f"{self._pod['metadata']['name']}-{volume['name']}")
            return self._local(volume)

    def _local(self, volume: Manifest) -> Path:
        """A volume, or a PersistentVolume's spec, that needs no more than this machine."""
        if host := volume.get("hostPath"):
            return host_path(host, self._folder / str(volume.get("name")))
        if kind := next((kind for kind in LASTING if volume.get(kind)), None):
            owner = "" if kind == "nfs" else self._namespace  # a server has no namespaces
            return _made(self._shares.folder / owner / lasting_name(kind, volume[kind]))
        if (volume.get("emptyDir") or {}).get("medium") == "Memory" and self._shares.may_mount:
            return self._memory(volume)
        if "emptyDir" in volume or any(kind in volume for kind in FROM_API):
            return _made(self._folder / str(volume["name"]))
        kinds = ", ".join(key for key in volume if key != "name")
        raise VolumeError(f"volumes of the kind {kinds} are not supported by this node")

    def _memory(self, volume: Manifest) -> Path:
        """As large as its limit, else half of the machine's memory."""
        directory = _made(self._folder / str(volume["name"]))
        if directory not in self._in_memory:
            limit = amount(volume["emptyDir"].get("sizeLimit"))
            linux_namespaces.mount_memory(str(directory), int(limit or 0))
            self._in_memory.add(directory)
        return directory

    async def _claim(self, name: str) -> Path:
        claim = await self._get(
            CLAIMS.path(self._namespace, name), f'persistentvolumeclaim "{name}" not found'
        )
        bound = str(claim["spec"].get("volumeName") or "")
        if not bound or claim["status"].get("phase") != "Bound":
            raise VolumeError(f'PVC is not bound: persistentvolumeclaim "{name}"')
        volume = await self._get(VOLUMES.path(name=bound), f'persistentvolume "{bound}" not found')
        spec = volume["spec"]
        if "local" in spec:
            return host_path({"path": spec["local"]["path"], "type": "Directory"}, self._folder / bound)
        if "hostPath" in spec:
            return _made(Path(spec["hostPath"]["path"]))
        kinds = {kind: spec[kind] for kind in LASTING if kind in spec}
        return self._local({"name": bound, **(kinds or {"PersistentVolume": None})})

    async def _get(self, path: str, missing: str) -> Any:
        try:
            return await self._client.send(requests.get(path))
        except NotFound:
            raise VolumeError(missing) from None

    async def _tokens_for(self, volume: Manifest) -> dict[tuple[str, int], str]:
        """By audience and lifetime."""
        found = {}
        for source in (volume.get("projected") or {}).get("sources") or []:
            if wanted := source.get("serviceAccountToken"):
                key = str(wanted.get("audience") or ""), int(wanted.get("expirationSeconds") or 3600)
                with _naming(volume):
                    found[key] = await self._token(*key)
        return found

    async def _token(self, audience: str, seconds: int) -> str:
        known = self._tokens.get((audience, seconds))
        if known is None or time.monotonic() > known.renew_at:
            known = await self._request_token(audience, seconds)
            self._tokens[audience, seconds] = known
        return known.text

    async def _request_token(self, audience: str, seconds: int) -> Token:
        """Bound to the pod: it is worth nothing once the pod is gone."""
        meta = self._pod["metadata"]
        account = str(self._pod["spec"].get("serviceAccountName") or "default")
        pod = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": seconds,
            "boundObjectRef": pod,
        }
        path = requests.SERVICE_ACCOUNTS.path(self._namespace, account, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await self._client.send(requests.create(path, body))
        except NotFound:
            missing = f'failed to fetch token: serviceaccounts "{account}" not found'
            raise VolumeError(missing) from None
        return Token(str(answer["status"]["token"]), time.monotonic() + RENEW_AT * seconds)


@contextlib.contextmanager
def _naming(volume: Manifest) -> Iterator[None]:
    """Errors say which volume they are about, as a kubelet's events do."""
    try:
        yield
    except (TfyardError, OSError) as error:
        if isinstance(error, VolumeError) and str(error).startswith("MountVolume"):
            raise
        said = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
        raise VolumeError(said) from error


def host_path(source: Manifest, instead: Path) -> Path:
    """A directory or file of this machine. One that does not exist, and of no declared type, is an empty directory
    for this pod alone: drivers of another machine, say, are not created here."""
    path, kind = Path(source["path"]), str(source.get("type") or "")
    if kind == "DirectoryOrCreate":
        return _made(path)
    if kind == "FileOrCreate":
        path.touch()
    check, what = CHECKS.get(kind.removesuffix("OrCreate"), (None, ""))
    if check is not None and not (path.exists() and check(path.stat().st_mode)):
        raise VolumeError(f"hostPath type check failed: {path} is not a {what}")
    return path if path.exists() else _made(instead)


def write(directory: Path, wanted: dict[str, File]) -> None:
    """Replace each file at once, so that no reader finds half of one; remove those that are no longer wanted."""
    for path, file in wanted.items():
        target = inside(directory, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != file.data:
            new = target.with_name(f"..{target.name}")
            new.write_bytes(file.data)
            new.chmod(file.mode)
            new.rename(target)
    for root, _, names in os.walk(directory):
        for name in names:
            if str(Path(root, name).relative_to(directory)) not in wanted:
                Path(root, name).unlink()


def disk_use(directory: Path) -> int:
    """Bytes on the disk, as a kubelet counts them; files that vanish meanwhile do not count."""
    total = 0
    for root, folders, names in os.walk(directory):
        for name in (*folders, *names):
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118
    return total


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
