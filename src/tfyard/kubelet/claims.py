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
    requests,
    watch,
)
from tfyard.kubelet import patience
from tfyard.kubelet.events import Events
from tfyard.kubelet.processes import folder_name
from tfyard.kubelet.sources import CLAIMS, VOLUMES
from tfyard.model.names import PROVISIONER
from tfyard.node import volumes
from tfyard.views.metadata import Object
from tfyard.views.objects import Claim, ClaimStatus

DEFAULT_CLASS = "tfyard-local"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
RETRY = 1.0
NO_DEVICES = "this node has no block devices: ask for volumeMode: Filesystem"

log = logging.getLogger(__name__)


class PersistentVolumeClaim(Claim, frozen=True):
    @property
    def storage_class(self) -> str:
        """Storage class, also by the annotation of old manifests."""
        return self.metadata.annotations.get(BETA_CLASS) or self.spec.storage_class_name or ""

    @property
    def is_ours(self) -> bool:
        """Whether the claim waits for a volume from here: those without a class, or with a selector, are for
        volumes that users have created."""
        is_open = not self.spec.volume_name and not self.metadata.deletion_timestamp
        return is_open and bool(self.storage_class) and self.spec.selector is None


class VolumeSpec(Struct, frozen=True, rename="camel"):
    host_path: dict[str, Any] = {}
    persistent_volume_reclaim_policy: str = ""


class Volume(Object, frozen=True):
    spec: VolumeSpec = VolumeSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def is_left(self) -> bool:
        """Whether the volume is ours, and its claim is gone."""
        is_ours = self.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER
        is_released = self.status.phase in ("Released", "Failed")
        return is_ours and is_released and self.spec.persistent_volume_reclaim_policy == "Delete"


class Provisioner:
    """`async with Provisioner(client, folder)`: as long as the block lasts, every claim that names a storage
    class, whichever it is, gets a directory below the folder, which is removed with the claim."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self._events = Events(client, {"component": PROVISIONER})

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        await self._send(requests.create(requests.STORAGE_CLASSES.path(), storage_class()))
        await self._events.__aenter__()
        self._tasks = [asyncio.create_task(each) for each in (self._provide(), self._clear())]
        for task in self._tasks:
            task.add_done_callback(_log_failure)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._events.__aexit__()
        for problem in results:
            if isinstance(problem, Exception):
                raise problem

    async def _provide(self) -> None:
        async for change in watch(self.client, Kind(PersistentVolumeClaim), CLAIMS.path()):
            for claim in _objects(change):
                if claim.is_ours:
                    await self._create(claim)

    async def _clear(self) -> None:
        async for change in watch(self.client, Kind(Volume), VOLUMES.path()):
            for volume in _objects(change):
                if volume.is_left:
                    await self._delete(volume)

    async def _create(self, claim: PersistentVolumeClaim) -> None:
        meta = claim.metadata
        directory = self.folder / folder_name(meta.namespace, meta.name, meta.uid)
        if claim.spec.volume_mode == "Block":
            self._warn(claim, NO_DEVICES)
            return
        while problem := _make(directory):
            self._warn(claim, problem)
            await asyncio.sleep(RETRY)
        await self._send(requests.create(VOLUMES.path(), volume_for(claim, directory)))

    def _warn(self, claim: PersistentVolumeClaim, problem: str) -> None:
        meta = {key: getattr(claim.metadata, key) for key in ("name", "namespace", "uid")}
        about = {"kind": "PersistentVolumeClaim", "metadata": meta}
        self._events.tell(about, "ProvisioningFailed", problem, warning=True)

    async def _delete(self, volume: Volume) -> None:
        directory = Path(volume.spec.host_path["path"])
        if directory.parent == self.folder and directory.exists():
            try:
                await asyncio.to_thread(volumes.remove, directory)
            except OSError as problem:
                log.warning("the directory of %s cannot be removed: %s", volume.metadata.name, problem)
                return
        await self._send(requests.delete(VOLUMES.path(name=volume.metadata.name), uid=volume.metadata.uid))

    async def _send(self, request: Request) -> None:
        """A write that is refused must not end the service for all others."""
        try:
            await patience.send(self.client, request)
        except (AlreadyExists, NotFound):
            return  # done before; the watch is late
        except KubeError as problem:
            log.warning("%s %s was refused: %s", request.method, request.path, problem)


def _make(directory: Path) -> str:
    """Make a directory. Returns the problem, such as a full disk, which all claims have; empty: it is there."""
    try:
        directory.mkdir(exist_ok=True)
    except OSError as problem:
        return f"cannot make {directory}: {problem.strerror}"
    return ""


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception():
        log.error("claims are no longer served", exc_info=task.exception())


def _objects(change: Any) -> list[Any]:
    match change:
        case Snapshot(items):
            return items
        case Changed(item):
            return [item]
        case Removed():
            return []
    raise AssertionError(change)


def storage_class() -> dict[str, Any]:
    """The default storage class, for claims that name none."""
    return {
        "metadata": {
            "name": DEFAULT_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def volume_for(claim: PersistentVolumeClaim, directory: Path) -> dict[str, Any]:
    meta = claim.metadata
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": meta.uid}
    size = claim.spec.resources.requests.get("storage", "1Gi")
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
