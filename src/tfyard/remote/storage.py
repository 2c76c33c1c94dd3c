"""Claims that are to be created for what several tasks use."""

import msgspec
from msgspec import Struct

from tfyard.kube import Forbidden, Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.overview.objects import StorageClass
from tfyard.overview.storage_classes import MANY, choose

CLAIMS = Resource("", "v1", "persistentvolumeclaims")
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)


class Classes(Struct, frozen=True):
    items: tuple[StorageClass, ...] = ()


_classes = msgspec.json.Decoder(Classes)


def new_claim(client: SyncClient, namespace: str, name: str, size: str) -> Manifest:
    """For many nodes if a storage class offers that, else for one, of the cluster's default class. So it is where
    the user may not see storage classes."""
    try:
        found = client.send(requests.get(CLASSES.path()), _classes).items
    except Forbidden:
        found = ()
    chosen, access = choose(found)
    spec: Manifest = {"accessModes": [access], "resources": {"requests": {"storage": size}}}
    spec |= {"storageClassName": chosen} if chosen else {}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def can_share(claim: Manifest) -> bool:
    """Whether pods of several nodes can mount it."""
    return bool({MANY, "ReadOnlyMany"} & {*(claim["spec"].get("accessModes") or [])})
