"""Metadata of any object: its owner, labels and version.

`gc=False`: objects that are decoded from JSON cannot form a cycle.
"""

from msgspec import Struct

from tfyard.model.job import owner_key
from tfyard.model.names import JOB_KINDS
from tfyard.model.status import Time


class OwnerReference(Struct, frozen=True, rename="camel", gc=False):
    uid: str = ""
    controller: bool = False
    api_version: str = ""
    kind: str = ""
    name: str = ""


class ObjectMeta(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    generation: int = 0

    @property
    def job(self) -> OwnerReference | None:
        """The job that owns the object; None: none, or another controller does."""
        controller = next((owner for owner in self.owner_references if owner.controller), None)
        group = controller.api_version.partition("/")[0] if controller else ""
        is_job = controller is not None and JOB_KINDS.get(group) == controller.kind
        return controller if is_job else None

    @property
    def owner(self) -> str:
        """The key of the job that owns the object; empty: none."""
        job = self.job
        return owner_key(job.api_version, job.kind, self.namespace, job.name, job.uid) if job else ""


def version_number(version: str) -> int:
    """A resourceVersion as a number; 0: it is none. Kubernetes guarantees numbers since 1.35, and etcd always had
    them."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0


class Object(Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name
