"""What is read of a TFJob in a list: little, quickly, and whoever wrote its status."""

from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.kube import Kind
from tfyard.kube.decoding import decode
from tfyard.model import Status
from tfyard.model.summary import JobSummary

UNREADABLE = Status(phase="Unknown")
"""Of a job whose stored status cannot be read: one such job must not hide the others."""


class _Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    creation_timestamp: datetime
    uid: str = ""
    resource_version: str = ""


class _Role(Struct, frozen=True):
    replicas: int = 1


class _Spec(Struct, frozen=True, rename="camel"):
    tf_replica_specs: dict[str, _Role] = {}


class View(Struct, frozen=True):
    metadata: _Meta
    spec: Raw = Raw(b"{}")
    status: Raw = Raw(b"{}")


VIEWS = Kind(View)
_SPEC, _STATUS = msgspec.json.Decoder(_Spec), msgspec.json.Decoder(Status)


def summary(manifest: bytes) -> JobSummary:
    return of_view(decode(VIEWS.one, manifest))


def of_view(view: View) -> JobSummary:
    meta, status = view.metadata, _status(view.status)
    if any(not role.ready for role in status.replica_statuses.values()):
        status = _with_counts(status, view.spec)
    return JobSummary(
        name=meta.name,
        namespace=meta.namespace,
        job=meta.name,
        created=meta.creation_timestamp,
        status=status,
    )


def _status(raw: Raw) -> Status:
    """That of v1alpha1 has a state; it, and what others wrote, is read by `formats`, which is slower to import."""
    if b'"state"' not in bytes(raw):
        with suppress(msgspec.DecodeError):
            return _STATUS.decode(raw)
    from tfyard import formats

    try:
        return formats.load_status({"status": msgspec.json.decode(raw)})
    except Invalid:
        return UNREADABLE


def _with_counts(status: Status, spec: Raw) -> Status:
    """Other operators write how many are active, not how many of how many."""
    try:
        specs = _SPEC.decode(spec).tf_replica_specs
    except msgspec.DecodeError:
        return status
    roles = {}
    for name, role in status.replica_statuses.items():
        of = specs.get(name, _Role()).replicas
        roles[name] = role if role.ready else replace(role, ready=f"{role.active + role.succeeded}/{of}")
    return replace(status, replica_statuses=roles)
