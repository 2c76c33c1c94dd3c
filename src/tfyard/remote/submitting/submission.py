"""Submits a job: looks whether it can run, and applies it with all that it needs.

Nothing is made before everything was checked. Names are deterministic: submitting twice meets the same objects.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import TfyardError
from tfyard.extras import needs
from tfyard.formats.tfjob import edits
from tfyard.job_input.code_reading import CodeReading
from tfyard.kube import Refused, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Job, Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import CODE, QUEUE_NAME
from tfyard.overview import preflight as overview
from tfyard.overview.doctor import Finding
from tfyard.overview.evidence import Evidence, seen
from tfyard.overview.wording import harmless
from tfyard.remote.reading import job_records
from tfyard.remote.reading.evidence import given_as, with_collections
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import applying, changes, code_store, preflight
from tfyard.remote.submitting.applying import ApplyOptions, Resources
from tfyard.remote.submitting.code_store import CodeOptions, Plan
from tfyard.remote.submitting.prepare import (
    CLAIM,
    PreparedSubmission,
    Submission,
    manifests,
    prepare,
    with_storage,
)

__all__ = [
    "CannotSubmit",
    "Parcel",
    "PreparedSubmission",
    "Say",
    "Submission",
    "Submitted",
    "check",
    "create",
    "pack",
    "prepare",
    "submit",
    "submit_prepared",
    "uploader",
]

LARGE = 512 << 10
"""Bytes of a TFJob above which `submit` warns: all of it is sent at each change of its status."""

T = TypeVar("T")
Upload = Callable[[Plan], None]
Annotate = Callable[[dict[str, str], CodeReading], dict[str, str]]
"""Annotations of a job that is about to be submitted, from those that the existing one keeps, and its code."""


class Parcel(Struct, frozen=True, kw_only=True):
    """All objects of a submission, and its code."""

    manifests: list[Manifest]
    """Objects in the order in which they are created."""
    code: Plan
    notes: tuple[str, ...]
    known: Evidence
    """Evidence that was already asked for."""


class Submitted(StoredTFJob, frozen=True):
    """An object as the server has it."""

    is_changed: bool
    """Whether it is not what was submitted before."""


class CannotSubmit(TfyardError):
    """Carries all findings. `anyway`: the option or argument that submits the job all the same."""

    def __init__(self, findings: Sequence[Finding], *, anyway: str = "--force") -> None:
        self.findings = tuple(findings)
        wrong = [line for each in findings if each.level == "wrong" for line in lines(each)]
        text = "\n".join(f"  {line}" for line in wrong)
        super().__init__(f"nothing was submitted; {anyway} submits it anyway:\n{text}")


def lines(finding: Finding) -> list[str]:
    fix = [f"  fix: {finding.fix}"] if finding.fix else []
    return [harmless(line) for line in (f"{finding.subject}: {finding.text}", *fix)]


def submit(client: SyncClient, submission: Submission, say: Say) -> Submitted:
    """The job as the server has it; raises CannotSubmit with everything that stands in its way."""
    return submit_prepared(client, prepare(submission, client.access.namespace), submission, say)


def submit_prepared(
    client: SyncClient,
    prepared: PreparedSubmission,
    submission: Submission,
    say: Say,
    upload: Upload | None = None,
    annotate: Annotate | None = None,
) -> Submitted:
    """`upload` sends code that is too large for a ConfigMap; nothing else may use the client meanwhile.
    `annotate` is called when everything was checked."""
    code = None if submission.dry_run else CodeReading(prepared.job.code, prepared.folder)
    existing = _existing(client, prepared.job)
    parcel = pack(client, prepared, submission)
    for note in parcel.notes:
        say(note)
    if existing is None:
        check(client, parcel, force=submission.force, say=say)
    how = ApplyOptions(submission.force_conflicts, submission.dry_run, compares=existing is not None)
    _try(client, parcel.manifests, how, existing)
    kept = changes.annotations_kept(existing.manifest if existing else None)
    parcel = _annotated(parcel, annotate(kept, code) if annotate and code else kept)
    for text in _resized(existing, _job_of(parcel.manifests)) if existing else ():
        say(text)
    made = _create(client, parcel, how, say, upload or uploader(client, say))
    if code is not None and made.is_changed:
        state, diff = code.result()
        job_records.write(client, made, job_records.origin_of(prepared.job, state), diff, say)
    if existing and edits.is_suspended(made.manifest) and not _is_queued(made):
        say(f"{made.name} is stopped and stays stopped; `tfyard resume {made.name}` starts it again")
    return made


def _annotated(parcel: Parcel, annotations: dict[str, str]) -> Parcel:
    marked = (changes.annotated(m, annotations) if m["kind"] == "TFJob" else m for m in parcel.manifests)
    return replace(parcel, manifests=list(marked))


def _resized(existing: StoredTFJob, wanted: Manifest) -> Iterator[str]:
    """Notes about new numbers of tasks: the file counts, also after `tfyard scale`."""
    before = edits.roles(existing.manifest)
    for name, role in edits.roles(wanted).items():
        if name in before and "replicas" in role.spec and role.replicas != before[name].replicas:
            yield f"{name.lower()}: {before[name].replicas} -> {role.replicas} tasks"


def _is_queued(tfjob: StoredTFJob) -> bool:
    """Whether the job is queued by Kueue, which suspends it until there is room."""
    return QUEUE_NAME in tfjob.labels


def pack(client: SyncClient, prepared: PreparedSubmission, submission: Submission) -> Parcel:
    """Asks the cluster for what the objects depend on: its storage classes, and the code that it has."""
    known = Evidence(
        name=prepared.job.name, namespace=prepared.job.namespace, given_as=given_as(prepared.job.annotations)
    )
    if prepared.makes_output:
        known = with_collections(client, known, {"classes"})
        prepared = with_storage(prepared, seen(known.classes))
    options = CodeOptions(helper_image=submission.helper_image, leave_out=submission.leave_out)
    code = code_store.plan(client, prepared.job, prepared.folder, options)
    objects = manifests(replace(prepared, job=code.job, others=_unique(prepared, code)))
    notes = (*prepared.notes, *code_store.summary_lines(code), *_large(_job_of(objects)))
    return Parcel(manifests=objects, code=code, notes=notes, known=known)


def _large(manifest: Manifest) -> Iterator[str]:
    if (size := len(msgspec.json.encode(manifest))) > LARGE:
        text = f"the TFJob has {size >> 10} KiB, and Kubernetes stores no object of more than about 1.5 MiB"
        yield f"warning: {text}\n  fix: keep data in a ConfigMap, a volume or the image, and mount it"


def _unique(prepared: PreparedSubmission, code: Plan) -> tuple[Manifest, ...]:
    """Objects without duplicates: the code may go onto a claim that comes with the job."""
    claims = {each["metadata"]["name"] for each in prepared.job.objects}
    ours = (each for each in code.objects if each["metadata"]["name"] not in claims)
    return (*prepared.others, *ours)


def uploader(client: SyncClient, say: Say) -> Upload:
    def upload(plan: Plan) -> None:
        asyncio.run(code_store.upload(client.access, plan, say))

    return upload


def _existing(client: SyncClient, job: Job) -> StoredTFJob | None:
    try:
        existing = StoredTFJob(TFJOBS, client.send(requests.get(TFJOBS.path(job.namespace, job.name))))
    except Refused:
        return None  # there is none, or the user may create jobs and not read them; applying it will tell
    status, others = existing.summary.status, "another name submits this one beside it"
    if existing.manifest["metadata"].get("deletionTimestamp"):
        raise TfyardError(f"TFJob {job.name} is being deleted; submit it when it is gone, or {others}")
    if status.is_finished:
        end = "succeeded" if status.has("Succeeded") else "failed"
        ways = f"`tfyard rerun {job.name}` runs it again, `tfyard delete {job.name}` removes it"
        raise TfyardError(f"TFJob {job.name} has {end}; {ways}, {others}")
    return existing


def check(client: SyncClient, parcel: Parcel, *, force: bool, say: Say) -> None:
    """Raises CannotSubmit with everything that stands in the way of the job."""
    beside = [each for each in parcel.manifests if each["kind"] != "TFJob"]
    looked = preflight.look(client, formats.load(_job_of(parcel.manifests)), beside, parcel.known)
    findings = overview.findings(looked, datetime.now(UTC))
    if unchecked := overview.unchecked(looked):
        say(f"not checked: {'; '.join(unchecked)}")
    for finding in findings:
        if finding.level == "warning" or force:
            say("\n".join((f"warning: {lines(finding)[0]}", *lines(finding)[1:])))
    if not force and any(finding.level == "wrong" for finding in findings):
        raise CannotSubmit(findings)


def _try(client: SyncClient, wanted: list[Manifest], how: ApplyOptions, existing: StoredTFJob | None) -> None:
    """The job alone, without storing it: what it is refused for must not leave its claims behind."""
    manifest = _job_of(wanted)
    stored = applying.apply(client, TFJOBS, manifest, replace(how, dry_run=True))
    fixed = [each.name for each in changes.fixed(existing.manifest, stored)] if existing else []
    if fixed:
        name = manifest["metadata"]["name"]
        text = f"TFJob {name} runs already, and {', '.join(fixed)} cannot change while it does"
        raise TfyardError(f"{text}; {changes.way_out(name)}")


def _job_of(wanted: list[Manifest]) -> Manifest:
    (manifest,) = (each for each in wanted if each["kind"] == "TFJob")
    return manifest


def _create(client: SyncClient, parcel: Parcel, how: ApplyOptions, say: Say, upload: Upload) -> Submitted:
    def job(resources: Resources) -> Submitted:
        wanted = parcel.manifests[parcel.manifests.index(_job_of(parcel.manifests)) :]
        made, *_ = [_apply(client, resources, manifest, how, say) for manifest in wanted]
        return made

    return create(client, parcel, how, say, upload, job)


def create(
    client: SyncClient,
    parcel: Parcel,
    how: ApplyOptions,
    say: Say,
    upload: Upload,
    last: Callable[[Resources], T],
) -> T:
    """First what the job refers to, then its code, then by `last` the job, or the sweep that has it."""
    wanted, code = parcel.manifests, parcel.code
    sends = code.kind == "claim" and not how.dry_run
    if sends:
        with needs("kubernetes", "sending code to a claim"):  # before anything is created
            from tfyard.kube import transport  # noqa: F401
    resources = applying.find_resources(client, wanted)
    at, made = wanted.index(_job_of(wanted)), list[Submitted]()
    try:
        for manifest in wanted[:at]:
            made.append(_apply(client, resources, manifest, how, say))
        if sends:
            client.close()
            upload(code)
        result = last(resources)
    except BaseException:  # Ctrl-C, too
        if not how.dry_run:
            _tell_left(made, wanted[at]["metadata"], say)
        raise
    if code.kind == "config-map" and not code.is_present and not how.dry_run:
        with suppress(Refused):  # a user who may not list other code leaves it there
            code_store.prune(client, code.job.namespace, {code.hash})
    return result


def _tell_left(made: list[Submitted], job: Manifest, say: Say) -> None:
    """Names the objects that were created for a job that was not."""
    titles = " ".join(applying.title(each.resource, each.manifest) for each in made if each.is_changed)
    if titles:
        them = "it" if " " not in titles else "them"
        remove = f"`kubectl delete -n {job['namespace']} {titles}` removes {them}"
        left = f"{job['name']} was not submitted, but created: {titles.replace(' ', ', ')}"
        say(f"{left}; submitting it again uses {'that' if them == 'it' else 'those'}, {remove}")


def _apply(
    client: SyncClient, resources: Resources, manifest: Manifest, how: ApplyOptions, say: Say
) -> Submitted:
    """Claims and code are only created: a claim that exists has its data, and code is named by its content."""
    resource = resources[manifest["apiVersion"], manifest["kind"]]
    manifest = manifest if resource.namespaced else _without_namespace(manifest)
    title, ending = applying.title(resource, manifest), " (server dry run)" if how.dry_run else ""
    if manifest["kind"] == CLAIM or CODE in (manifest["metadata"].get("labels") or {}):
        is_new = applying.create(client, resource, manifest, how)
        say(f"{title} {'created' if is_new else 'exists, and is used as it is'}{ending}")
        return Submitted(resource, manifest, is_new)
    before = applying.stored_object(client, resource, manifest) if how.compares and not how.dry_run else None
    stored = applying.apply(client, resource, manifest, how)
    is_changed = before is None or applying.content(before) != applying.content(stored)
    say(f"{title} {'serverside-applied' if is_changed else 'unchanged'}{ending}")
    return Submitted(resource, stored, is_changed)


def _without_namespace(manifest: Manifest) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "namespace"}
    return {**manifest, "metadata": metadata}
