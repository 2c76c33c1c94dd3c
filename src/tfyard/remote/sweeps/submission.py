"""Submits a sweep: everything is checked as for a job, by the job of its first trial; then what all trials share
is created, and at last the ConfigMap, from which a driver begins."""

from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import NotPossible, Usage
from tfyard.formats.sweepfile import fitting
from tfyard.install.roles import DRIVER_IMAGE
from tfyard.job_input.code_reading import CodeReading
from tfyard.kube import AlreadyExists, NotFound, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Job, Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import SWEEP
from tfyard.model.sweep import SweepSpec, SweepState, Trial
from tfyard.overview import sweep_text
from tfyard.overview.sweep_notes import notes
from tfyard.remote.reading import job_records, jobs
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import applying
from tfyard.remote.submitting.applying import ApplyOptions
from tfyard.remote.submitting.prepare import PreparedSubmission, Submission, prepare
from tfyard.remote.submitting.submission import Parcel, Upload, check, create, pack, uploader
from tfyard.render import code as rendering
from tfyard.sweeps.decide import begun
from tfyard.sweeps.search import Random

from . import store
from .store import SweepObject
from .trials import LAST, labels, trial_job
from .trials import manifest as trial_manifest


class PreparedSweep(Struct, frozen=True, kw_only=True):
    """A sweep that is about to be submitted, as far as it is known without asking a cluster."""

    spec: SweepSpec
    submission: Submission
    prepared: PreparedSubmission
    driver_image: str = ""
    """Image of the pods that drive it; empty: that of the installation."""

    @property
    def namespace(self) -> str:
        return self.prepared.job.namespace


def prepare_sweep(spec: SweepSpec, submission: Submission, namespace: str) -> PreparedSweep:
    """Raises Invalid or Usage with every problem. `namespace`: that of the context."""
    prepared = prepare(submission, namespace)
    spec = fitting.named(spec, prepared.job)
    fitting.check(spec, prepared.job, LAST)
    all_notes = (*prepared.notes, *notes(spec, prepared.job))
    job = replace(prepared.job, tensorboard=None, labels={**prepared.job.labels, **labels(spec.name)})
    marked = replace(prepared, job=_marked(job, spec.name), notes=all_notes)
    return PreparedSweep(spec=spec, submission=submission, prepared=marked)


def submit(
    client: SyncClient, sweep: PreparedSweep, driver: str, say: Say, upload: Upload | None = None
) -> SweepObject | None:
    """The new sweep, driven by `driver`. None: it was a dry run."""
    prepared, submission = sweep.prepared, sweep.submission
    reading = None if submission.dry_run else CodeReading(prepared.job.code, prepared.folder)
    _require_new(client, sweep)
    _require_no_trials(client, sweep)
    parcel, how = (
        pack(client, prepared, submission),
        ApplyOptions(submission.force_conflicts, submission.dry_run),
    )
    for note in parcel.notes:
        say(note)
    state = begun(sweep.spec, datetime.now(UTC))
    job, first = _job_of(parcel), first_trial(parcel, state)
    check(client, replace(parcel, manifests=[*_beside(parcel), first]), force=submission.force, say=say)
    applying.apply(client, TFJOBS, first, replace(how, dry_run=True))
    wanted = store.manifest(state, sweep.namespace, formats.to_yaml(_unmarked(job)), prepared.job.labels)
    own_image = {DRIVER_IMAGE: sweep.driver_image} if sweep.driver_image else {}
    wanted["metadata"]["annotations"] = {**store.driven(driver, state.created), **own_image}

    def last(_: object) -> SweepObject | None:
        made = _create(client, wanted, how)
        say(f"sweep/{sweep.spec.name} created{' (server dry run)' if how.dry_run else ''}")
        return made

    made = create(client, parcel, how, say, upload or uploader(client, say), last)
    if made is not None and reading is not None:
        code, diff = reading.result()
        origin = job_records.origin_of(prepared.job, code)
        job_records.write(client, _owner(made), origin, diff, say)
    return made


def first_trial(parcel: Parcel, state: SweepState) -> Manifest:
    """The TFJob of a trial with some values, which shows whether those of the others can run."""
    values = Random(state.spec).values(1, ())
    job = formats.load(_job_of(parcel))
    return trial_manifest(trial_job(job, state, Trial(number=1, values=values), state.created))


def _beside(parcel: Parcel) -> list[Manifest]:
    return [each for each in parcel.manifests if each["kind"] != "TFJob"]


def _job_of(parcel: Parcel) -> Manifest:
    (job,) = (each for each in parcel.manifests if each["kind"] == "TFJob")
    return job


def _marked(job: Job, sweep: str) -> Job:
    """The job whose pods have the labels of the sweep."""

    def change(template: Manifest) -> Manifest:
        metadata = template.get("metadata") or {}
        return {
            **template,
            "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels(sweep)}},
        }

    return rendering.each_template(job, change)


def _unmarked(manifest: Manifest) -> Manifest:
    """The job as people get it again: it is no trial."""
    metadata = manifest["metadata"]
    others = {name: text for name, text in metadata["labels"].items() if name != SWEEP}
    rest = {name: each for name, each in metadata.items() if name != "labels"}
    return {**manifest, "metadata": {**rest, **({"labels": others} if others else {})}}


def _require_new(client: SyncClient, sweep: PreparedSweep) -> None:
    name, namespace = sweep.spec.name, sweep.namespace
    others = "another name in the file submits this one beside it"
    if known := store.read(client, namespace, name):
        state = known.state(datetime.now(UTC))
        way = f"`tfyard resume {name}` goes on, " if state.phase == "Stopped" else ""
        text = f"the sweep {name} exists already ({state.phase}, {sweep_text.progress(state)})"
        raise NotPossible(f"{text}; {way}`tfyard delete {name}` removes it, {others}")
    try:
        client.send(requests.get(TFJOBS.path(namespace, name)))
    except NotFound:
        return
    raise NotPossible(f"there is a TFJob {name}, and a name means one thing; {others}")


def _require_no_trials(client: SyncClient, sweep: PreparedSweep) -> None:
    """Trials of a sweep that was deleted go a moment after it."""
    selector = f"{SWEEP}={sweep.spec.name}"
    if jobs.summaries(client, jobs.Scope(sweep.namespace, selector)):
        shown = f"`kubectl get tfjobs -n {sweep.namespace} -l {selector}` lists them"
        text = f"trials of an earlier sweep {sweep.spec.name} are still there"
        raise NotPossible(f"{text}; {shown}: submit it when they are gone, or with another name")


def _create(client: SyncClient, wanted: Manifest, how: ApplyOptions) -> SweepObject | None:
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    query = {key: value for key, value in how.query.items() if key != "force"}
    request = requests.create(requests.CONFIG_MAPS.path(namespace), wanted, query)
    try:
        made = client.send(request, store.VIEWS.one)
    except AlreadyExists:
        text = f"there is a ConfigMap {name} already, and the sweep is kept in one of its name"
        raise Usage(f"{text}; choose another name") from None
    return None if how.dry_run else made


def _owner(sweep: SweepObject) -> StoredTFJob:
    """The ConfigMap as the owner of its record."""
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    metadata = {"name": sweep.name, "namespace": sweep.namespace, "uid": sweep.metadata.uid}
    return StoredTFJob(requests.CONFIG_MAPS, {**head, "metadata": metadata})
