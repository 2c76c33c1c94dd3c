"""TFJobs and their objects other than pods, with the few fields that decisions depend on: watch streams are
decoded straight into these."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.kube.decoding import cut
from tfyard.model import Group, ServiceSpec
from tfyard.model.job import owner_key
from tfyard.views.pods import ObjectMeta

LARGE = 64 << 10
"""Bytes of the largest spec that is kept; nearly all are smaller."""
RUN_POLICY_DEPTH = 4
"""Levels of `spec.runPolicy.schedulingPolicy.minResources`, its deepest field."""


class Child(Struct, frozen=True):
    """A ConfigMap, or another object of which only the existence matters."""

    metadata: ObjectMeta

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def version(self) -> str:
        return self.metadata.resource_version

    @property
    def relevant(self) -> tuple[object, ...]:
        """The fields that decisions depend on."""
        return (self.metadata.uid,)


class ServiceView(Child, frozen=True):
    """A Service: one that was edited is repaired."""

    spec: ServiceSpec = ServiceSpec()

    @property
    def relevant(self) -> tuple[object, ...]:
        return self.metadata.uid, self.spec


class GroupStatus(Struct, frozen=True, gc=False):
    phase: str = ""


class GroupView(Child, frozen=True):
    """A PodGroup, of Kubernetes or another scheduler: its spec, and Volcano's phase."""

    spec: dict[str, Any] = {}
    status: GroupStatus = GroupStatus()

    @property
    def relevant(self) -> tuple[object, ...]:
        """The fields that decisions depend on, without the counts that schedulers keep in it."""
        return self.metadata.uid, self.metadata.deletion_timestamp, self.spec, self.status.phase


def to_group(view: Child) -> Group | None:
    if not isinstance(view, GroupView):
        return None
    meta = view.metadata
    return Group(
        spec=view.spec,
        phase=view.status.phase,
        deleting=meta.deletion_timestamp is not None,
    )


class StoredJob(Struct, frozen=True, rename="camel", kw_only=True):
    """A TFJob as it is stored; spec and status stay bytes until this job is reconciled. Of a large spec only
    the hash is kept (`has_spec` is false): it is fetched when the job is read."""

    metadata: ObjectMeta
    spec: Raw = Raw(b"{}")
    status: Raw = Raw(b"{}")
    api_version: str = ""
    kind: str = ""

    @property
    def as_owner(self) -> str:
        """The job as its objects refer to it."""
        meta = self.metadata
        return owner_key(self.api_version, self.kind, meta.namespace, meta.name, meta.uid)

    def keep(self) -> "StoredJob":
        """A copy with its own bytes: a decoded Raw keeps the whole answer, which may be a page of 500 jobs."""
        return replace(
            self,
            spec=_digest(self.spec) if memoryview(self.spec).nbytes > LARGE else self.spec.copy(),
            status=self.status.copy(),
        )

    @property
    def has_spec(self) -> bool:
        return bytes(memoryview(self.spec)[:1]) != b'"'

    def is_same_job(self, other: "StoredJob") -> bool:
        """Whether both are equal except for the status."""
        mine, its = self.metadata, other.metadata
        same = (mine.uid, mine.generation, mine.labels, mine.annotations)
        return same == (its.uid, its.generation, its.labels, its.annotations) and self.spec == other.spec

    def document(self) -> dict[str, Any]:
        """The object as plain data, with the fields that a job is read from. RecursionError if it is nested
        deeper than Python can follow."""
        return self._document(self.spec)

    def shallow_document(self) -> dict[str, Any]:
        """The document without what is nested deeper than any field of a run policy."""
        return self._document(cut(bytes(self.spec), RUN_POLICY_DEPTH))

    def _document(self, spec: Raw | bytes) -> dict[str, Any]:
        meta = self.metadata
        fields = ("name", "namespace", "uid", "labels", "annotations", "generation")
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {name: getattr(meta, name) for name in fields},
            "spec": msgspec.json.decode(spec),
            "status": msgspec.json.decode(self.status),
        }


def _digest(spec: Raw) -> Raw:
    """A spec's hash in its place: a JSON string, where a spec is an object."""
    return Raw(b'"%s"' % sha256(spec).hexdigest().encode())
