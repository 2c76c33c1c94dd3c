"""The TFJobs of a cluster, of both API groups: listed, found by name, watched."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import NoSuchJob, TfyardError
from tfyard.kube import (
    Forbidden,
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
from tfyard.kube.requests import BOTH_TFJOBS, TFJOBS
from tfyard.kube.sync import ANYTHING, SyncClient
from tfyard.model import Manifest
from tfyard.model.callbacks import Contact
from tfyard.model.names import DELETED_BY_TTL, SWEEP
from tfyard.model.spelling import nearest
from tfyard.model.summary import JobSummary
from tfyard.remote.reading.rows import VIEWS, SummaryView, of_view, summary


class RemovedJob(NoSuchJob):
    """The operator has removed the job, because its time to live was over."""


class Scope(Struct, frozen=True):
    """Jobs of a namespace, or of all; with these labels, in kubectl's syntax."""

    namespace: str = ""
    selector: str = ""

    @property
    def query(self) -> dict[str, str]:
        return {"labelSelector": self.selector} if self.selector else {}


class StoredTFJob(Struct, frozen=True):
    resource: Resource
    manifest: Manifest

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"]["uid"])

    @property
    def labels(self) -> dict[str, str]:
        return self.manifest["metadata"].get("labels") or {}

    @property
    def owners(self) -> set[str]:
        """Uids of the objects that own it."""
        return {str(each["uid"]) for each in self.manifest["metadata"].get("ownerReferences") or []}

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)

    @property
    def title(self) -> str:
        return _title(self.resource, self.name)

    @property
    def summary(self) -> JobSummary:
        return summary(msgspec.json.encode(self.manifest))


class LocatedJob(Struct, frozen=True):
    """A row of a list, and where its object is."""

    resource: Resource
    job: JobSummary
    sweep: str = ""
    """Name of the sweep that it is a trial of; empty: of none."""

    @property
    def title(self) -> str:
        return _title(self.resource, self.job.name)


def find(client: SyncClient, namespace: str, name: str) -> StoredTFJob:
    """The job of that name, or `NoSuchJob` with the name that was probably meant."""
    for resource in BOTH_TFJOBS:
        try:
            return StoredTFJob(resource, client.send(requests.get(resource.path(namespace, name))))
        except NotFound:
            continue
        except Forbidden:
            if resource is TFJOBS:
                raise  # most users' roles do not mention the old group, which few clusters have
    raise _missing(client, namespace, name)


def summaries(client: SyncClient, scope: Scope) -> list[LocatedJob]:
    """Rows by namespace and name, as kubectl sorts."""
    rows = [
        row
        for resource, answers in _pages(client, scope)
        for answer in answers
        for row in _rows(resource, answer)
    ]
    return sorted(rows, key=lambda each: (each.job.namespace, each.job.name))


def manifests(client: SyncClient, scope: Scope) -> list[StoredTFJob]:
    """The whole objects, in the order of `summaries`."""
    objects = [
        StoredTFJob(
            resource, {"apiVersion": page["apiVersion"], "kind": page["kind"].removesuffix("List"), **item}
        )
        for resource, answers in _pages(client, scope)
        for page in (decode(ANYTHING, answer) for answer in answers)
        for item in page["items"]
    ]
    return sorted(objects, key=lambda each: (each.namespace, each.name))


def watch(
    client: SyncClient, resource: Resource, scope: Scope, contact: Contact = lambda _problem: None
) -> Iterator[list[LocatedJob]]:
    """First all jobs at once, then each change; a deleted job has the phase Deleted. `client` must not be used for
    anything else meanwhile."""
    known: dict[tuple[str, str], LocatedJob] = {}
    path = resource.path(scope.namespace)
    for event in sync_lists.watch(client, VIEWS, path, scope.query, contact=contact):
        objects = event.items if isinstance(event, Snapshot) else [event.object]
        rows = [_row(resource, view) for view in objects]
        news = [row for row in rows if _is_news(known, row, event)]
        changes = [_deleted(row) for row in news] if isinstance(event, Removed) else news
        if isinstance(event, Snapshot):  # after a gap: some may be gone
            now = {_key(row) for row in rows}
            changes += [_deleted(known.pop(key)) for key in list(known) if key not in now]
        yield changes


def follow(client: SyncClient, tfjob: StoredTFJob, deadline: float) -> Iterator[JobSummary | None]:
    """One job, now and after each change, until `deadline` on the monotonic clock; None: it was deleted, even if
    there is a new one of its name."""
    uid, path = tfjob.manifest["metadata"]["uid"], tfjob.resource.path(tfjob.namespace)
    of = requests.selecting(fields={"metadata.name": tfjob.name})
    for event in sync_lists.watch(client, VIEWS, path, of, deadline):
        views = event.items if isinstance(event, Snapshot) else [event.object]
        same = [view for view in views if view.metadata.uid == uid]
        if isinstance(event, Removed) or not same:
            yield None
            return
        yield of_view(same[0])


def served(client: SyncClient, scope: Scope) -> list[Resource]:
    """Kinds of TFJobs that can be listed here."""
    return [resource for resource, _ in _pages(client, scope, {"limit": "1"})]


def _pages(
    client: SyncClient, scope: Scope, query: dict[str, str] | None = None
) -> list[tuple[Resource, list[bytes]]]:
    pages, refusal = list[tuple[Resource, list[bytes]]](), None
    for resource in BOTH_TFJOBS:
        path = resource.path(scope.namespace)
        try:
            if query:
                pages.append((resource, [client.read(requests.get(path, {**scope.query, **query}))]))
            else:
                pages.append((resource, sync_lists.pages(client, path, scope.query)))
        except NotFound:
            continue
        except Forbidden as problem:
            refusal = refusal or problem
            if resource is TFJOBS:
                raise
    if not pages:
        raise refusal or NoSuchJob(
            "this cluster does not serve TFJobs; `tfyard install` installs the operator"
        )
    return pages


def _rows(resource: Resource, answer: bytes) -> list[LocatedJob]:
    try:
        return [_row(resource, view) for view in decode(VIEWS.page, answer).items or []]
    except Undecodable:
        return [LocatedJob(resource, summary(item)) for item in items(answer)]


def _row(resource: Resource, view: SummaryView) -> LocatedJob:
    return LocatedJob(resource, of_view(view), (view.metadata.labels or {}).get(SWEEP, ""))


def _title(resource: Resource, name: str) -> str:
    """Name of an object, as of kubectl's `-o name`."""
    return f"tfjob.{resource.group}/{name}"


def _deleted(row: LocatedJob) -> LocatedJob:
    return replace(row, job=row.job.deleted())


def _key(row: LocatedJob) -> tuple[str, str]:
    return row.job.namespace, row.job.name


def _is_news(known: dict[tuple[str, str], LocatedJob], row: LocatedJob, event: object) -> bool:
    """Whether the row is new or has changed; remembers it."""
    before = known.get(_key(row))
    if isinstance(event, Removed):
        known.pop(_key(row), None)
        return True
    known[_key(row)] = row
    return before != row


def _missing(client: SyncClient, namespace: str, name: str) -> TfyardError:
    """Error about the missing job, also if the jobs that exist cannot be listed."""
    try:
        known = [each.job.name for each in summaries(client, Scope(namespace))]
    except NoSuchJob as problem:
        return problem
    except KubeError:
        known = []
    if not known and _is_no_namespace(client, namespace):
        return NoSuchJob(f"there is no namespace {namespace}; `kubectl get namespaces` lists them")
    meant = nearest(name, known)
    if not meant and (removed := _removed(client, namespace, name)):
        return RemovedJob(f"TFJob {name!r} is not in the namespace {namespace} any more: {removed}")
    hint = f"; did you mean {meant}?" if meant else "; `tfyard get -A` lists the jobs of all namespaces"
    return NoSuchJob(f"TFJob {name!r} not found in the namespace {namespace}{hint}")


def _is_no_namespace(client: SyncClient, namespace: str) -> bool:
    """Whether the namespace does not exist, as far as that may be read."""
    try:
        return client.find(requests.NAMESPACES.path(name=namespace)) is None
    except KubeError:
        return False


def _removed(client: SyncClient, namespace: str, name: str) -> str:
    """The operator's event about the removal of the job, which is kept for an hour; empty: there is none."""
    about = {"involvedObject.name": name, "reason": DELETED_BY_TTL}
    try:
        events = client.send(requests.get(requests.EVENTS.path(namespace), requests.selecting(fields=about)))
    except KubeError:
        return ""
    return str(events["items"][-1]["message"]) if events["items"] else ""
