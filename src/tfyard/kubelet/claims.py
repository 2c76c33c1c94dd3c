"""Claims get directories of this machine: a PersistentVolume for each claim that asks for a storage class."""

import asyncio
import logging
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from tfyard.kube import (
    AlreadyExists,
    Changed,
    Client,
    Kind,
    KubeError,
    NotFound,
    Removed,
    Request,
    Snapshot,
    Transient,
    requests,
    watch,
)
from tfyard.kubelet.volumes import CLAIMS, VOLUMES
from tfyard.model.names import PROVISIONER
from tfyard.node import volumes

DEFAULT_CLASS = "tfyard-local"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
CLASSES = requests.STORAGE_CLASSES
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
RETRY = 1.0

log = logging.getLogger(__name__)


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None


class ClaimSpec(Struct, frozen=True, rename="camel"):
    access_modes: list[str] = []
    resources: dict[str, Any] = {}
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    selector: dict[str, Any] | None = None


class Claim(Struct, frozen=True):
    metadata: Meta
    spec: ClaimSpec

    @property
    def storage_class(self) -> str:
        """By the annotation of old manifests, too."""
        return self.metadata.annotations.get(BETA_CLASS) or self.spec.storage_class_name or ""

    @property
    def is_ours(self) -> bool:
        """It waits for a volume, and no other one is meant: claims without a class, or with a selector, are for
        volumes that somebody has created."""
        is_open = not self.spec.volume_name and not self.metadata.deletion_timestamp
        return is_open and bool(self.storage_class) and self.spec.selector is None


class VolumeSpec(Struct, frozen=True, rename="camel"):
    host_path: dict[str, Any] = {}
    persistent_volume_reclaim_policy: str = ""


class VolumeStatus(Struct, frozen=True):
    phase: str = ""


class Volume(Struct, frozen=True):
    metadata: Meta
    spec: VolumeSpec
    status: VolumeStatus = VolumeStatus()

    @property
    def is_left(self) -> bool:
        """Ours, and its claim is gone."""
        is_ours = self.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER
        is_released = self.status.phase in ("Released", "Failed")
        return is_ours and is_released and self.spec.persistent_volume_reclaim_policy == "Delete"


class Provisioner:
    """`async with Provisioner(client, folder)`: as long as the block lasts, every claim that names a storage
    class, whichever it is, gets a directory below the folder. It goes with the claim."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        await self._send(requests.create(CLASSES.path(), storage_class()))
        self._tasks = [asyncio.create_task(each) for each in (self._provide(), self._clear())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for problem in results:
            if isinstance(problem, Exception):
                raise problem

    async def _provide(self) -> None:
        async for change in watch(self.client, Kind(Claim), CLAIMS.path()):
            for claim in _objects(change):
                if claim.is_ours:
                    await self._create(claim)

    async def _clear(self) -> None:
        async for change in watch(self.client, Kind(Volume), VOLUMES.path()):
            for volume in _objects(change):
                if volume.is_left:
                    await self._delete(volume)

    async def _create(self, claim: Claim) -> None:
        directory = self.folder / f"{claim.metadata.namespace}_{claim.metadata.name}_{claim.metadata.uid}"
        directory.mkdir(exist_ok=True)
        await self._send(requests.create(VOLUMES.path(), volume_for(claim, directory)))

    async def _delete(self, volume: Volume) -> None:
        directory = Path(volume.spec.host_path["path"])
        if directory.parent == self.folder and directory.exists():
            await asyncio.to_thread(volumes.remove, directory)
        await self._send(requests.delete(VOLUMES.path(name=volume.metadata.name), uid=volume.metadata.uid))

    async def _send(self, request: Request) -> None:
        """These writes can be repeated, so it waits for an apiserver that is away. One that is refused must not
        end the service for all others."""
        while True:
            try:
                await self.client.send(request)
                return
            except Transient:
                await asyncio.sleep(RETRY)
            except (AlreadyExists, NotFound):
                return  # done before; the watch had not told yet
            except KubeError as problem:
                log.warning("%s %s was refused: %s", request.method, request.path, problem)
                return


def _objects(change: Any) -> list[Any]:
    match change:
        case Snapshot(items):
            return items
        case Changed(found):
            return [found]
        case Removed():
            return []
    raise AssertionError(change)


def storage_class() -> dict[str, Any]:
    """The default one: for claims that name none."""
    return {
        "metadata": {
            "name": DEFAULT_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def volume_for(claim: Claim, directory: Path) -> dict[str, Any]:
    meta = claim.metadata
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": meta.uid}
    size = (claim.spec.resources.get("requests") or {}).get("storage", "1Gi")
    return {
        "metadata": {"name": f"pvc-{meta.uid}", "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": claim.spec.access_modes,
            "volumeMode": claim.spec.volume_mode,
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": claim.storage_class,
            "claimRef": {**reference, "namespace": meta.namespace, "name": meta.name},
            "hostPath": {"path": str(directory), "type": "DirectoryOrCreate"},
        },
    }
