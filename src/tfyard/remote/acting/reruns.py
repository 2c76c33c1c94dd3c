"""A new job of the spec of another one: its name, its manifest without what the server and others added, and what
makes it exactly the same."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import NotPossible
from tfyard.formats.tfjob import edits
from tfyard.job_input import options
from tfyard.kube import NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Job, Manifest, tensorflow_container
from tfyard.model.names import MLFLOW_RUN, PACKAGES_VOLUME, RERUN_OF, SWEEP, TRIAL, VALUES
from tfyard.model.origin import CodeState
from tfyard.remote.reading import job_records, jobs, views
from tfyard.remote.reading.jobs import Scope, StoredTFJob
from tfyard.remote.submitting import code_lookup
from tfyard.remote.submitting.code_lookup import CodeLocation

NOT_COPIED = (
    *("kubectl.kubernetes.io/", "kueue.x-k8s.io/", "meta.helm.sh/", "argocd.argoproj.io/", MLFLOW_RUN),
    *(SWEEP, TRIAL, VALUES),
)
"""Prefixes of annotations that tell how the old object was made, or where it is in a queue; and where it is
reported, which is a run of the old one. And what makes it a trial of a sweep, by which the new one is not."""
_PINNED = re.compile(r"[\w.:/-]+@sha256:[0-9a-f]{64}")
"""An image that is always the same."""


class RerunChanges(Struct, frozen=True, kw_only=True):
    """Differences of the new job."""

    name: str = ""
    """Name of the new job; empty: that of the old one with a number."""
    counts: dict[str, int] = {}
    """Role, such as Worker -> its number of tasks."""
    variables: dict[str, str] = {}
    digests: dict[str, str] = {}
    """Role -> the image to run, with its digest."""
    commit: str = ""
    """Commit that init containers clone; empty: as before."""


def read(sets: Sequence[str], env: Sequence[str], name: str | None) -> RerunChanges:
    """Reads the options ROLE=N and K=V."""
    asked = options.JobOptions(sets=tuple(sets), env=tuple(env), name=name)
    options.check(asked)
    counts = dict(options.replicas(text) for text in asked.sets)
    return RerunChanges(name=name or "", counts=counts, variables=asked.variables)


def next_name(manifest: Manifest, taken: Container[str]) -> str:
    """`mnist-2`, `mnist-3` and so on, also after a rerun of `mnist-2`; but `resnet-50-2` after `resnet-50`."""
    first = first_name(manifest)
    return next(name for number in count(2) if (name := f"{first}-{number}") not in taken)


def manifest(old: Manifest, name: str, changes: RerunChanges) -> Manifest:
    """The new job, which runs at once, also if the old one was stopped. It has no owners."""
    changed = [
        *edits.resumed(old),
        *edits.scaled(old, changes.counts),
        *edits.with_variables(old, changes.variables),
        *edits.with_images(old, changes.digests),
        *edits.with_commit(old, changes.commit),
    ]
    return {
        "apiVersion": old["apiVersion"],
        "kind": old["kind"],
        "metadata": {"name": name, **_metadata(old)},
        "spec": edits.edited(old, changed)["spec"],
    }


def _metadata(old: Manifest) -> Manifest:
    labels = {
        key: text for key, text in (old["metadata"].get("labels") or {}).items() if key not in NOT_COPIED
    }
    annotations = old["metadata"].get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.startswith(NOT_COPIED)}
    return {"labels": labels, "annotations": {**kept, RERUN_OF: first_name(old)}}


def first_name(manifest: Manifest) -> str:
    """Name of the job that was rerun first."""
    metadata = manifest["metadata"]
    return str((metadata.get("annotations") or {}).get(RERUN_OF) or metadata["name"])


def previous(client: SyncClient, tfjob: StoredTFJob) -> str:
    """Name of the newest job before this one, of those that were made from the same first one; empty: none."""
    first, created = first_name(tfjob.manifest), tfjob.summary.created
    related = [
        each.summary
        for each in jobs.manifests(client, Scope(tfjob.namespace))
        if first_name(each.manifest) == first and each.uid != tfjob.uid
    ]
    before = [each for each in related if each.created <= created]
    return max(before, key=lambda each: each.created).name if before else ""


# --- exactly


def exact(
    client: SyncClient, tfjob: StoredTFJob, changes: RerunChanges
) -> tuple[RerunChanges, tuple[str, ...]]:
    """The changes with the recorded commit and images; and notes on the code, and on what may not be the same."""
    job, where = formats.check(tfjob.manifest).job, code_lookup.location(tfjob)
    _require(client, tfjob, where)
    code = job_records.read(client, tfjob).origin.code
    ran = job_records.digests(job, views.pods(client, tfjob))
    digests = {role: image for role, image in ran.items() if _PINNED.fullmatch(image)}
    commit = code.commit if where.is_git else ""
    doubts = [*_of_code(where, code), *_of_images(job, digests), *_of_packages(job, where)]
    notes = (_same_code(where, code), *(f"not the same, maybe: {text}" for text in doubts))
    return replace(changes, digests=digests, commit=commit), tuple(filter(None, notes))


def _require(client: SyncClient, tfjob: StoredTFJob, where: CodeLocation) -> None:
    if where.kind != "config-map":
        return
    try:
        client.send(requests.get(requests.CONFIG_MAPS.path(tfjob.namespace, where.name)))
    except NotFound:
        way = "`tfyard submit` in its git tree, at the recorded commit, sends it again"
        text = f"its code is gone: there is no ConfigMap {where.name}"
        raise NotPossible(f"{tfjob.name} cannot be repeated exactly: {text}; {way}") from None


def _same_code(where: CodeLocation, code: CodeState) -> str:
    if where.is_git:
        return f"the code is commit {code.commit} of {where.name}" if code.commit else ""
    if not where.hash:
        return ""
    change = {
        None: "",
        False: f" (commit {code.commit[:12]})",
        True: f" (commit {code.commit[:12]}, changed)",
    }
    return f"the code is that of the job: {where}{change[code.is_dirty] if code.commit else ''}"


def _of_code(where: CodeLocation, code: CodeState) -> Iterator[str]:
    if where.is_git and not code.commit:
        yield f"the code is cloned again of {where.name}: no pod is there that tells the commit"
    elif where.kind == "fetched" and not where.is_git:
        yield f"the code is fetched again of {where.name}"
    elif where.kind == "config-map" and not where.hash:
        yield f"the code is in {where}, which may have been changed"


def _of_images(job: Job | None, digests: dict[str, str]) -> Iterator[str]:
    for role in job.roles if job else ():
        image = str(tensorflow_container(role.template).get("image") or "")
        if role.replicas and role.name not in digests and not _PINNED.fullmatch(image):
            yield f"{image} of {role.name.lower()}, whose digest no pod tells"


def _of_packages(job: Job | None, where: CodeLocation) -> Iterator[str]:
    """Packages of a claim are kept by the hash of image and file."""
    steps = {
        each.get("name")
        for role in (job.roles if job else ())
        for each in (role.template.get("spec") or {}).get("initContainers") or ()
    }
    if PACKAGES_VOLUME in steps and where.kind != "claim":
        yield "packages that pip installs again, where the requirements name no version"
