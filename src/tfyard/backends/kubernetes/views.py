"""TFJobs and their objects other than pods, with the few fields that decisions depend on: watch streams are
decoded straight into these."""

import zlib
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.kube.decoding import cut
from tfyard.model import Group, ServiceSpec
from tfyard.model.job import owner_key
from tfyard.model.names import (
    ATTEMPT,
    JOB_NAME,
    OPERATOR_NAME,
    PLUGINS_GROUP,
    QUEUE_FINALIZER,
    QUEUE_RETRIES,
    REPLICA_INDEX,
    REPLICA_TYPE,
    STOPPED,
    VOLCANO_GROUP,
)
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import PodView

SMALL = 4 << 10
"""Most bytes that are kept of what a job is read from, as they are or compressed: there may be thousands of jobs.
Nearly all are smaller."""
COMPRESSIBLE = 16 * SMALL
"""Bytes above which compressing is not worth the time: the result would not be small."""
READ_KEYS = frozenset((OPERATOR_NAME, JOB_NAME, REPLICA_TYPE, REPLICA_INDEX, PLUGINS_GROUP))
READ_KEYS |= {ATTEMPT, STOPPED, QUEUE_RETRIES, VOLCANO_GROUP}
"""Labels and annotations that are read of a job's objects. Users may write a megabyte of others."""
COMPRESSED = zlib.compress(b"")[:1]
"""What compressed bytes begin with, and JSON does not."""
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


V = TypeVar("V", PodView, Child)


def slim(view: V) -> V:
    """A job's object without the metadata that is never read."""
    meta = view.metadata
    few = replace(
        meta,
        labels=_read(meta.labels),
        annotations=_read(meta.annotations),
        owner_references=(meta.job,) if meta.job else (),
        finalizers=(QUEUE_FINALIZER,) if QUEUE_FINALIZER in meta.finalizers else (),
    )
    return replace(view, metadata=few)


def _read(fields: dict[str, str]) -> dict[str, str]:
    return {key: fields[key] for key in READ_KEYS & fields.keys()}


class StoredJob(Struct, frozen=True, rename="camel", kw_only=True):
    """A TFJob as it is stored; spec and status stay bytes until this job is reconciled. What is not small is kept
    compressed, with labels and annotations in the place of the spec; of what is still large only the hash is kept
    (`has_spec` is false): it is fetched when the job is read."""

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
        meta, spec, status = self.metadata, self.spec.copy(), self.status.copy()
        meta = replace(meta, owner_references=(), finalizers=())
        if self.size > SMALL:
            spec = _packed((spec, meta.labels, meta.annotations))
            meta = replace(meta, labels={}, annotations={})
        return replace(self, metadata=meta, spec=spec, status=status)

    @property
    def has_spec(self) -> bool:
        return self._begin != b'"'

    @property
    def _begin(self) -> bytes:
        """The first byte of the spec: of an object, of what is compressed, or of a hash."""
        return bytes(memoryview(self.spec)[:1])

    @property
    def size(self) -> int:
        """Bytes of what the job is read from."""
        meta = self.metadata
        return memoryview(self.spec).nbytes + _size(meta.labels) + _size(meta.annotations)

    def is_same_job(self, other: "StoredJob") -> bool:
        """Whether both are equal except for the status."""
        mine, its = self.metadata, other.metadata
        same = (mine.uid, mine.generation, mine.labels, mine.annotations)
        return same == (its.uid, its.generation, its.labels, its.annotations) and self.spec == other.spec

    def unpacked(self) -> "StoredJob":
        """The job with its spec, labels and annotations in their places. Only if it has them."""
        if self._begin != COMPRESSED:
            return self
        spec, labels, annotations = _PACKED.decode(zlib.decompress(self.spec))
        return replace(
            self, metadata=replace(self.metadata, labels=labels, annotations=annotations), spec=spec
        )

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


_PACKED = msgspec.json.Decoder(tuple[Raw, dict[str, str], dict[str, str]])


def _packed(parts: tuple[Raw, dict[str, str], dict[str, str]]) -> Raw:
    """What is not small, compressed; if that is not small either, its hash: a JSON string."""
    whole = msgspec.json.encode(parts)
    if len(whole) <= COMPRESSIBLE and len(packed := zlib.compress(whole)) <= SMALL:
        return Raw(packed)
    return Raw(b'"%s"' % sha256(whole).hexdigest().encode())


def _size(fields: dict[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in fields.items())
