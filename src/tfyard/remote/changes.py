"""What a file would change in a cluster, by server-side dry run: the server itself says what would be stored."""

import difflib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from tfyard import formats
from tfyard.formats.declarations.reading import Path
from tfyard.formats.tfjob import edits
from tfyard.formats.tfjob.edits import Edit
from tfyard.kube import Forbidden, NotFound, Resource, Unprocessable, requests
from tfyard.kube.requests import FIELD_MANAGER, Patch
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest, Status
from tfyard.model.names import CODE, DIALECT, SERVICES

from .addresses import OLD_TFJOBS
from .applying import find_resources, title
from .jobs import Found
from .prepare import CLAIM

APPLY = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All", "fieldValidation": "Strict"}
OWN = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")
"""Fields of metadata that the server writes."""
DECIDED_ONCE = (("spec", "dialect"), *(("metadata", "annotations", name) for name in (DIALECT, SERVICES)))
"""At a job's first start, and kept in `status.cluster`."""
TFJOB = "TFJob"


class Change(Struct, frozen=True, kw_only=True):
    """Of one object."""

    title: str
    before: Manifest | None
    """None: it would be new."""
    after: Manifest
    marks: tuple[str, ...] = ()
    """What of it cannot change, or has no effect, while the job runs."""

    @property
    def is_none(self) -> bool:
        return self.before == self.after


def diff(client: SyncClient, manifests: Iterable[Manifest]) -> list[Change]:
    """For each object; of those that stay as they are, `is_none` holds."""
    manifests = list(manifests)
    places = find_resources(client, manifests, {})
    return [_change(client, each, places[each["apiVersion"], each["kind"]]) for each in manifests]


def lines(change: Change) -> Iterator[str]:
    """As a unified diff of YAML, which `kubectl diff` prints, too; what to know of it follows."""
    before = formats.to_yaml(change.before).splitlines() if change.before else []
    after = formats.to_yaml(change.after).splitlines()
    names = (f"live/{change.title}", f"file/{change.title}")
    yield from difflib.unified_diff(before, after, *names, lineterm="")
    yield from (f"# {mark}" for mark in change.marks)


def _change(client: SyncClient, wanted: Manifest, resource: Resource) -> Change:
    metadata = wanted["metadata"]
    namespace = str(metadata.get("namespace") or client.access.namespace)
    if not resource.namespaced:
        metadata = {key: value for key, value in metadata.items() if key != "namespace"}
    path = resource.path(namespace, metadata["name"])
    live = _get(client, path)
    after, marks = _applied(client, path, {**wanted, "metadata": metadata}, live)
    if wanted["kind"] == TFJOB:
        marks += _marks(live, after) if live else _namesake(client, namespace, metadata["name"])
    return Change(
        title=title(resource, wanted),
        before=_shown(live) if live else None,
        after=_shown(after),
        marks=marks,
    )


def _applied(
    client: SyncClient, path: str, wanted: Manifest, live: Manifest | None
) -> tuple[Manifest, tuple[str, ...]]:
    """The object as it would be stored. What the server refuses to change is shown as if it would not, marked.
    A claim that exists is used as it is."""
    if live is not None and wanted["kind"] == CLAIM:
        return live, ()
    try:
        return client.send(requests.patch(path, wanted, Patch.APPLY, APPLY)), ()
    except Unprocessable:
        if live is None or wanted["kind"] != TFJOB or _manager(live) == _manager(wanted):
            raise
    after = client.send(requests.patch(path, _managed_by(wanted, _manager(live)), Patch.APPLY, APPLY))
    mark = "spec.runPolicy.managedBy cannot change: two operators would manage one job"
    return _managed_by(after, _manager(wanted)), (mark,)


def _managed_by(manifest: Manifest, manager: str | None) -> Manifest:
    policy = {**(manifest["spec"].get("runPolicy") or {}), "managedBy": manager}
    if manager is None:
        del policy["managedBy"]
    return edits.edited(manifest, [Edit(("spec", "runPolicy"), policy)])


def _manager(manifest: Manifest) -> str | None:
    spec = manifest.get("spec") or {}
    return (spec.get("runPolicy") or {}).get("managedBy") or spec.get("managedBy")


def _get(client: SyncClient, path: str) -> Manifest | None:
    try:
        found: Manifest = client.send(requests.get(path))
    except NotFound:
        return None
    return found


def _shown(manifest: Manifest) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in OWN}
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": metadata}


# --- what cannot change while a job runs


def _marks(live: Manifest, after: Manifest) -> tuple[str, ...]:
    name, status = live["metadata"]["name"], Found(OLD_TFJOBS, live).summary.status
    changed = [path for path in _changed(live, after) if path[0] in ("spec", "metadata")]
    if changed and status.is_finished:
        again = f"`tfyard rerun {name}`, or another name in the file, starts a new job"
        return (f"{name} has finished, so this has no effect; {again}",)
    found = (_mark(path, name, status) for path in changed)
    return tuple(dict.fromkeys(mark for mark in found if mark))


def _mark(path: Path, name: str, status: Status) -> str:
    """Empty: it takes effect at once, as the run policy and the number of tasks do."""
    where = ".".join(map(str, path))
    if path in DECIDED_ONCE and status.cluster is not None:
        return f"{where} has no effect while the job runs: it was decided when the job started"
    if path[-2:] == ("schedulingPolicy", "queue"):
        return f"{where} cannot change while the job runs: its PodGroup is in the queue"
    if path == ("metadata", "annotations", CODE):
        return f"the code cannot change while the job runs; {_way_out(name)}"
    if path[0] == "spec" and path[1] != "runPolicy" and path[-1] != "replicas":
        where = ".".join(map(str, path[:4]))  # spec.tfReplicaSpecs.Worker.template
        return f"{where} cannot change while the job runs: pods that run keep theirs; {_way_out(name)}"
    return ""


def _way_out(name: str) -> str:
    return f"`tfyard delete {name}` it first, or submit another one by --name"


def _changed(before: object, after: object, path: Path = ()) -> Iterator[Path]:
    """Where they differ; lists as a whole."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        if before != after:
            yield path
        return
    for key in (*before, *(key for key in after if key not in before)):
        if key not in OWN or path != ("metadata",):
            yield from _changed(before.get(key), after.get(key), (*path, key))


def _namesake(client: SyncClient, namespace: str, name: str) -> tuple[str, ...]:
    """Of the other API group."""
    try:
        is_there = _get(client, OLD_TFJOBS.path(namespace, name)) is not None
    except Forbidden:  # most users' roles say nothing about that group, which few clusters have
        is_there = False
    text = f"there is a TfJob {name} of tensorflow.org, which has pods of the same names: this job would wait"
    return (text,) if is_there else ()
