"""The TFJobs of a cluster, of both API groups: listed, found by name, watched."""

from collections.abc import Iterator
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.errors import Invalid, TfyardError
from tfyard.kube import (
    Forbidden,
    Kind,
    KubeError,
    NotFound,
    Removed,
    Resource,
    Snapshot,
    Undecodable,
    requests,
    sync_lists,
)
from tfyard.kube.decoding import decode, items
from tfyard.kube.sync import ANYTHING, SyncClient
from tfyard.model import Manifest, Status
from tfyard.model.summary import JobSummary

from .addresses import OLD_TFJOBS, TFJOBS

BOTH = (TFJOBS, OLD_TFJOBS)
UNREADABLE = Status(phase="Unknown")
"""Of a job whose stored status cannot be read: one such job must not hide the others."""


class Missing(TfyardError):
    """There is no such job, or the cluster knows no TFJobs."""


class Scope(Struct, frozen=True):
    """Which jobs: of a namespace, or of all; with these labels, in kubectl's words."""

    namespace: str = ""
    selector: str = ""

    @property
    def query(self) -> dict[str, str]:
        return {"labelSelector": self.selector} if self.selector else {}


class Found(Struct, frozen=True):
    resource: Resource
    manifest: Manifest

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)

    @property
    def title(self) -> str:
        return _title(self.resource, self.name)

    @property
    def summary(self) -> JobSummary:
        return summary(msgspec.json.encode(self.manifest))


class Listed(Struct, frozen=True):
    """A row of a list, and where its object is."""

    resource: Resource
    job: JobSummary

    @property
    def title(self) -> str:
        return _title(self.resource, self.job.name)


class Change(Struct, frozen=True):
    """Of a watch."""

    listed: Listed
    is_deleted: bool = False


def find(client: SyncClient, namespace: str, name: str) -> Found:
    """The job of that name, or `Missing` with the name that was probably meant."""
    for resource in BOTH:
        try:
            return Found(resource, client.send(requests.get(resource.path(namespace, name))))
        except NotFound:
            continue
        except Forbidden:
            if resource is TFJOBS:
                raise  # of the old group, which few clusters have, most users' roles say nothing
    raise _missing(client, namespace, name)


def summaries(client: SyncClient, scope: Scope) -> list[Listed]:
    """By namespace and name, as kubectl sorts."""
    found = [
        Listed(resource, job)
        for resource, answers in _pages(client, scope)
        for answer in answers
        for job in _summaries(answer)
    ]
    return sorted(found, key=lambda each: (each.job.namespace, each.job.name))


def manifests(client: SyncClient, scope: Scope) -> list[Found]:
    """The whole objects, in the order of `summaries`."""
    found = [
        Found(resource, {"apiVersion": page["apiVersion"], "kind": page["kind"].removesuffix("List"), **item})
        for resource, answers in _pages(client, scope)
        for page in (decode(ANYTHING, answer) for answer in answers)
        for item in page["items"]
    ]
    return sorted(found, key=lambda each: (each.namespace, each.name))


def newest(client: SyncClient, namespace: str) -> Listed | None:
    found = summaries(client, Scope(namespace))
    return max(found, key=lambda each: each.job.created, default=None)


def watch(client: SyncClient, resource: Resource, scope: Scope) -> Iterator[list[Change]]:
    """First all of them at once, then each change. `client` is used for nothing else meanwhile."""
    known: dict[tuple[str, str], Listed] = {}
    for event in sync_lists.watch(client, _VIEWS, resource.path(scope.namespace), scope.query):
        objects = event.items if isinstance(event, Snapshot) else [event.object]
        rows = [Listed(resource, _of_view(view)) for view in objects]
        changes = [Change(row, isinstance(event, Removed)) for row in rows if _is_news(known, row, event)]
        if isinstance(event, Snapshot):  # after a gap: some may be gone
            now = {_key(row) for row in rows}
            changes += [Change(known.pop(key), is_deleted=True) for key in list(known) if key not in now]
        yield changes


def follow(client: SyncClient, found: Found, deadline: float) -> Iterator[JobSummary | None]:
    """One job, now and after each change, until `deadline` on the monotonic clock; None: it was deleted, even if
    there is a new one of its name."""
    uid, path = found.manifest["metadata"]["uid"], found.resource.path(found.namespace)
    of = requests.selecting(fields={"metadata.name": found.name})
    for event in sync_lists.watch(client, _VIEWS, path, of, deadline):
        views = event.items if isinstance(event, Snapshot) else [event.object]
        same = [view for view in views if view.metadata.uid == uid]
        if isinstance(event, Removed) or not same:
            yield None
            return
        yield _of_view(same[0])


def served(client: SyncClient, scope: Scope) -> list[Resource]:
    """Which of both kinds can be listed here."""
    return [resource for resource, _ in _pages(client, scope, {"limit": "1"})]


def summary(manifest: bytes) -> JobSummary:
    try:
        return _of_view(decode(_VIEWS.one, manifest))
    except Undecodable:
        return _unusual(decode(_UNUSUAL, manifest))


# --- reading


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


class _View(Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()
    status: Status = Status()


class _Unusual(Struct, frozen=True):
    """Written by an older operator, or by hand."""

    metadata: _Meta
    status: Raw = Raw(b"{}")


_VIEWS = Kind(_View)
_UNUSUAL = msgspec.json.Decoder(_Unusual)


def _pages(
    client: SyncClient, scope: Scope, query: dict[str, str] | None = None
) -> list[tuple[Resource, list[bytes]]]:
    found, refusal = list[tuple[Resource, list[bytes]]](), None
    for resource in BOTH:
        path = resource.path(scope.namespace)
        try:
            if query:
                found.append((resource, [client.read(requests.get(path, {**scope.query, **query}))]))
            else:
                found.append((resource, sync_lists.pages(client, path, scope.query)))
        except NotFound:
            continue
        except Forbidden as problem:
            refusal = refusal or problem
            if resource is TFJOBS:
                raise
    if not found:
        raise refusal or Missing("this cluster knows no TFJobs; `tfyard install` installs the operator")
    return found


def _summaries(answer: bytes) -> list[JobSummary]:
    try:
        return [_of_view(view) for view in decode(_VIEWS.page, answer).items or []]
    except Undecodable:
        return [summary(item) for item in items(answer)]


def _of_view(view: _View) -> JobSummary:
    meta, status = view.metadata, view.status
    if any(not role.ready for role in status.replica_statuses.values()):
        status = _with_counts(status, view.spec)
    return JobSummary(
        name=meta.name,
        namespace=meta.namespace,
        job=meta.name,
        created=meta.creation_timestamp,
        status=status,
    )


def _with_counts(status: Status, spec: _Spec) -> Status:
    """Other operators write how many are active, not how many of how many."""
    roles = {}
    for name, role in status.replica_statuses.items():
        of = spec.tf_replica_specs.get(name, _Role()).replicas
        roles[name] = role if role.ready else replace(role, ready=f"{role.active + role.succeeded}/{of}")
    return replace(status, replica_statuses=roles)


def _unusual(view: _Unusual) -> JobSummary:
    from tfyard import formats

    meta = view.metadata
    try:
        status = formats.load_status({"status": msgspec.json.decode(view.status)})
    except Invalid:
        status = UNREADABLE
    return JobSummary(
        name=meta.name,
        namespace=meta.namespace,
        job=meta.name,
        created=meta.creation_timestamp,
        status=status,
    )


def _title(resource: Resource, name: str) -> str:
    """As kubectl's `-o name`."""
    return f"tfjob.{resource.group}/{name}"


def _key(row: Listed) -> tuple[str, str]:
    return row.job.namespace, row.job.name


def _is_news(known: dict[tuple[str, str], Listed], row: Listed, event: object) -> bool:
    """Remembers it, too."""
    before = known.get(_key(row))
    if isinstance(event, Removed):
        known.pop(_key(row), None)
        return True
    known[_key(row)] = row
    return before != row


def _missing(client: SyncClient, namespace: str, name: str) -> TfyardError:
    """A list that fails is no reason to say less."""
    from tfyard.formats.declarations.reading import closest

    try:
        known = [each.job.name for each in summaries(client, Scope(namespace))]
    except Missing as problem:
        return problem
    except KubeError:
        known = []
    meant = closest(name, known)
    hint = f"; did you mean {meant}?" if meant else "; `tfyard get -A` lists the jobs of all namespaces"
    return Missing(f"TFJob {name!r} not found in the namespace {namespace}{hint}")
