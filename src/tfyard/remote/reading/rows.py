"""Summary of a TFJob in a list: few fields, decoded quickly, of a status that any operator wrote."""

from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.kube import Kind
from tfyard.kube.decoding import decode
from tfyard.model import Status
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.summary import JobSummary
from tfyard.views.tfjob_status import decode_status

UNREADABLE = Status(phase="Unknown")
"""Status of a job whose stored one cannot be read: one such job must not hide the others."""


class _JobMeta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    creation_timestamp: datetime
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class _RoleView(Struct, frozen=True):
    replicas: int = 1


class _Spec(Struct, frozen=True, rename="camel"):
    tf_replica_specs: dict[str, _RoleView] = {}


class SummaryView(Struct, frozen=True):
    metadata: _JobMeta
    spec: Raw = Raw(b"{}")
    status: Raw = Raw(b"{}")


VIEWS = Kind(SummaryView)
_SPEC = msgspec.json.Decoder(_Spec)


def summary(manifest: bytes) -> JobSummary:
    return of_view(decode(VIEWS.one, manifest))


def of_view(view: SummaryView) -> JobSummary:
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
    try:
        return decode_status(bytes(raw))
    except Invalid:
        return UNREADABLE


def _with_counts(status: Status, spec: Raw) -> Status:
    """Adds the number of tasks of each role: other operators write only how many are active."""
    try:
        specs = _SPEC.decode(spec).tf_replica_specs
    except CORRUPT_JSON:
        return status
    roles = {}
    for name, role in status.replica_statuses.items():
        of = specs.get(name, _RoleView()).replicas
        roles[name] = role if role.ready else replace(role, ready=f"{role.active + role.succeeded}/{of}")
    return replace(status, replica_statuses=roles)
