"""What a file would change in a cluster, by server-side dry run: the server itself says what would be stored."""

import difflib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from tfyard import formats
from tfyard.formats.declarations.reading import Path
from tfyard.formats.declarations.structs import fields
from tfyard.formats.tfjob import edits
from tfyard.formats.tfjob.edits import Edit
from tfyard.formats.tfjob.fields import RunPolicySpec
from tfyard.kube import Forbidden, Resource, Unprocessable, requests
from tfyard.kube.requests import FIELD_MANAGER, OLD_TFJOBS, Patch
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest, Status
from tfyard.model.names import CODE, DIALECT, MLFLOW_RUN, SERVICES
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting.applying import OF_SERVER, content, find_resources, title
from tfyard.remote.submitting.prepare import CLAIM

APPLY = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All", "fieldValidation": "Strict"}
DECIDED_ONCE = (("spec", "dialect"), *(("metadata", "annotations", name) for name in (DIALECT, SERVICES)))
"""Fields that are decided at the first start of a job, and kept in `status.cluster`."""
RUN_POLICY, SCHEDULING = "runPolicy", "schedulingPolicy"
FOLLOWED = frozenset((RUN_POLICY, *fields(RunPolicySpec)))
"""Fields that take effect at once. Before v1, the parts of the run policy were parts of the spec."""
CODE_HASH = ("metadata", "annotations", CODE)
TFJOB = "TFJob"


class UnchangeableField(Struct, frozen=True):
    """A part of a job that is to change, and cannot while the job runs."""

    path: Path
    why: str

    @property
    def name(self) -> str:
        return "its code" if self.path == CODE_HASH else ".".join(map(str, self.path))


class Change(Struct, frozen=True, kw_only=True):
    """Change of one object."""

    title: str
    before: Manifest | None
    """The object as it is; None: it would be new."""
    after: Manifest
    marks: tuple[str, ...] = ()
    """Notes about what cannot change while the job runs."""

    @property
    def is_none(self) -> bool:
        return self.before == self.after


def diff(client: SyncClient, manifests: Iterable[Manifest]) -> list[Change]:
    """A change for each object; `is_none` if it stays as it is."""
    manifests = list(manifests)
    resources = find_resources(client, manifests, {})
    return [_change(client, each, resources[each["apiVersion"], each["kind"]]) for each in manifests]


def annotations_kept(live: Manifest | None) -> dict[str, str]:
    """Annotations that are not in the user's file, and stay: the run of the job at MLflow."""
    annotations = (live or {}).get("metadata", {}).get("annotations") or {}
    return {name: text for name, text in annotations.items() if name == MLFLOW_RUN}


def annotated(manifest: Manifest, annotations: dict[str, str]) -> Manifest:
    """The manifest with these annotations, too."""
    if not annotations:
        return manifest
    metadata = manifest["metadata"]
    whole = {**(metadata.get("annotations") or {}), **annotations}
    return {**manifest, "metadata": {**metadata, "annotations": whole}}


def lines(change: Change) -> Iterator[str]:
    """The change as a unified diff of YAML, as `kubectl diff` prints it, and its marks."""
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
    live = client.find(path)
    whole = annotated({**wanted, "metadata": metadata}, annotations_kept(live))
    after = _applied(client, path, whole, live)
    marks: tuple[str, ...] = ()
    if wanted["kind"] == TFJOB:
        marks = _marks(live, after) if live else _namesake(client, namespace, metadata["name"])
    return Change(
        title=title(resource, wanted),
        before=content(live) if live else None,
        after=content(after),
        marks=marks,
    )


def _applied(client: SyncClient, path: str, wanted: Manifest, live: Manifest | None) -> Manifest:
    """The object as it would be stored, also with changes that the server refuses. A claim that exists is used as
    it is."""
    if live is not None and wanted["kind"] == CLAIM:
        return live
    try:
        return _dry_run(client, path, wanted)
    except Unprocessable:
        kept = _with_refused_of(wanted, live) if live is not None and wanted["kind"] == TFJOB else wanted
        if kept == wanted:
            raise
    return _with_refused_of(_dry_run(client, path, kept), wanted)


def _dry_run(client: SyncClient, path: str, wanted: Manifest) -> Manifest:
    after: Manifest = client.send(requests.patch(path, wanted, Patch.APPLY, APPLY))
    return after


def _with_refused_of(manifest: Manifest, other: Manifest) -> Manifest:
    """The manifest with those fields of the other's run policy that can never change: its manager, and the queue
    of its gang."""
    policy = {**_policy(manifest), "managedBy": _manager(other)}
    if policy["managedBy"] is None:
        del policy["managedBy"]
    scheduling, queue = _policy(manifest).get(SCHEDULING), (_policy(other).get(SCHEDULING) or {}).get("queue")
    if scheduling and scheduling.get("queue") and queue:
        policy[SCHEDULING] = {**scheduling, "queue": queue}
    return (
        edits.edited(manifest, [Edit(("spec", RUN_POLICY), policy)])
        if policy != _policy(manifest)
        else manifest
    )


def _policy(manifest: Manifest) -> Manifest:
    return (manifest.get("spec") or {}).get(RUN_POLICY) or {}


def _manager(manifest: Manifest) -> str | None:
    return _policy(manifest).get("managedBy") or (manifest.get("spec") or {}).get("managedBy")


# --- what cannot change while a job runs


def _marks(live: Manifest, after: Manifest) -> tuple[str, ...]:
    name = live["metadata"]["name"]
    is_changed = any(path[0] in ("spec", "metadata") for path in _changed(live, after))
    if is_changed and StoredTFJob(OLD_TFJOBS, live).summary.status.is_finished:
        again = f"`tfyard rerun {name}`, or another name in the file, starts a new job"
        return (f"{name} has finished, so this has no effect; {again}",)
    parts = (
        UnchangeableField(each.path[:4], each.why) for each in fixed(live, after)
    )  # spec.tfReplicaSpecs.Worker.template
    text = "{0.name} cannot change while the job runs: {0.why}; {1}"
    return tuple(dict.fromkeys(text.format(each, way_out(name)) for each in parts))


def fixed(live: Manifest, after: Manifest) -> list[UnchangeableField]:
    """Changes without effect while it runs. Most of the run policy, and numbers of tasks, take effect at once."""
    status, changed = StoredTFJob(OLD_TFJOBS, live).summary.status, [*_changed(live, after)]
    if CODE_HASH in changed:  # the volumes refer to it
        changed = [CODE_HASH, *(path for path in changed if path != CODE_HASH and path[-1] != "volumes")]
    return [UnchangeableField(path, why) for path in changed if (why := _why_fixed(path, status))]


def _why_fixed(path: Path, status: Status) -> str:
    """Why the field cannot change while the job runs; empty: it can."""
    if path in DECIDED_ONCE and status.cluster is not None:
        return "it was decided when the job started"
    if path[-2:] == (SCHEDULING, "queue"):
        return "its PodGroup is in the queue"
    if path[0] == "spec" and path[-1] == "managedBy":
        return "two operators would manage one job"
    is_replicas = path[1:2] == ("tfReplicaSpecs",) and path[3:] == ("replicas",)
    is_followed = path[0] != "spec" or path[1] in FOLLOWED or is_replicas
    return "" if is_followed and path != CODE_HASH else "pods that run keep theirs"


def way_out(name: str) -> str:
    return f"`tfyard delete {name}` it first, or submit it with another name"


def _changed(before: object, after: object, path: Path = ()) -> Iterator[Path]:
    """Paths of differences; lists differ as a whole, a new run policy in its parts."""
    if path[-1:] in ((RUN_POLICY,), (SCHEDULING,)):
        before, after = before or {}, after or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        if before != after:
            yield path
        return
    for key in (*before, *(key for key in after if key not in before)):
        if key not in OF_SERVER or path != ("metadata",):
            yield from _changed(before.get(key), after.get(key), (*path, key))


def _namesake(client: SyncClient, namespace: str, name: str) -> tuple[str, ...]:
    """Note about a job of the other API group with this name."""
    try:
        is_there = client.find(OLD_TFJOBS.path(namespace, name)) is not None
    except Forbidden:  # most users' roles say nothing about that group, which few clusters have
        is_there = False
    text = f"there is a TfJob {name} of tensorflow.org, which has pods of the same names: this job would wait"
    return (text,) if is_there else ()
