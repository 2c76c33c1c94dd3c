"""Reads what is to be submitted, as `local/prepare.py` reads what is to run here. No cluster is asked anything."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.tfjob.versions import V1
from tfyard.job_input import code_folder, files, options, script
from tfyard.job_input.load import Loaded, from_documents
from tfyard.job_input.options import JobOptions
from tfyard.model import Job, Manifest, MLflow, Problem, Role
from tfyard.model.names import GIVEN_AS, JOB_NAME, LAST_APPLIED, SWEEP
from tfyard.overview.storage_classes import ONE, choose
from tfyard.remote.submitting.applying import content
from tfyard.render import CodeFile, RenderOptions, podspec
from tfyard.render.tfjob import tfjob, unsupported
from tfyard.tracking.addresses import is_loopback
from tfyard.views.objects import StorageClass

CLAIM = "PersistentVolumeClaim"
KEPT = ("Namespace", "ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", CLAIM)
"""Kinds of objects beside workloads that a job needs as they are, in the order in which they are created."""


class Submission(JobOptions, frozen=True, kw_only=True):
    namespace: str = ""
    """Namespace of the job; empty: the file's own, else that of the context."""
    image: str = ""
    """Image of every task; empty: the file's own."""
    helper_image: str = ""
    """Image of the pod that carries the code, if it is too large for a ConfigMap."""
    leave_out: str = ""
    """A folder that is not part of the code: the one for the outputs."""
    force: bool = False
    """Submit the job although it cannot run."""
    force_conflicts: bool = False
    dry_run: bool = False
    """The server checks everything and stores nothing."""


class PreparedSubmission(Struct, frozen=True, kw_only=True):
    """A submission, as far as it is known without asking a cluster."""

    job: Job
    folder: Path
    """Folder that the job's code is relative to."""
    others: tuple[Manifest, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes about what differs from the user's file."""
    warnings: tuple[Problem, ...] = ()
    text: formats.Document | Sequence[str] = ()
    """Text that the warnings refer to."""
    reported_to: str = ""
    """Address of the MLflow server to which those report who follow the job."""
    makes_output: bool = False
    """The claim of the job was added to it, and its class and access are still to be chosen."""


def prepare(submission: Submission, namespace: str) -> PreparedSubmission:
    """Raises Invalid or Usage if the file or the options are wrong. `namespace`: that of the context."""
    options.check(submission)
    prepared = _from_script(submission) if submission.is_script else _from_file(submission)
    job = _with_image(options.adjusted(prepared.job, submission), submission.image)
    if not job.size:
        raise Usage(f"{job.name} has no tasks: nothing to submit")
    where = submission.namespace or _own_namespace(prepared.text) or namespace
    annotations = {**_without_kubectls(job.annotations), **_given_as(submission, prepared)}
    uri = job.mlflow.uri if job.mlflow else ""
    reported = MLflow(uri=uri) if uri and not is_loopback(uri) else None  # else the tasks could not reach it
    job = _in_namespace(replace(job, annotations=annotations, mlflow=reported), where)
    _check_again(job)
    others = tuple(_placed(each, where) for each in prepared.others)
    return replace(prepared, job=job, others=others, reported_to=uri)


def _given_as(submission: Submission, prepared: PreparedSubmission) -> dict[str, str]:
    """The annotation about a script or a job file; a TFJob is what the cluster has anyway."""
    if submission.is_script:
        return {GIVEN_AS: "script"}
    is_job_file = isinstance(prepared.text, formats.Document) and formats.is_job_file(prepared.text.data)
    return {GIVEN_AS: "job-file"} if is_job_file else {}


def _from_script(submission: Submission) -> PreparedSubmission:
    words = script.with_output(script.portable_words(submission, Path.cwd()))
    return PreparedSubmission(job=script.load(words), folder=Path.cwd(), makes_output=True)


def _from_file(submission: Submission) -> PreparedSubmission:
    if submission.args:
        raise Usage("what follows `--` is for scripts; a job file has the word run")
    documents, name = files.read_documents(submission.target), submission.target
    if any(formats.is_config(document.data) for document in documents):
        text = "is a config with resources: its servers are no job and never end"
        shown = files.display_name(name)
        raise Usage(f"{shown} {text}; `tfyard render {shown} | kubectl apply -f -` creates them")
    loaded = from_documents(documents, name, uses_images=not submission.image)
    return PreparedSubmission(
        job=_with_variables(loaded.job, submission.variables),
        folder=loaded.file.parent,
        others=tuple(_sorted(_kept(loaded))),
        notes=tuple(_notes(loaded)),
        warnings=loaded.warnings,
        text=loaded.text,
    )


def _notes(loaded: Loaded) -> Iterator[str]:
    if loaded.changes is None and loaded.job.api_version != V1:
        yield f"converted from {loaded.job.api_version} to {V1}"
    yield from (f"changed: {sentence}" for sentence in loaded.changes or ())
    yield from (f"not in a TFJob: {sentence}" for sentence in unsupported(loaded.job))
    for each in loaded.others if loaded.changes is not None else ():
        if each.get("kind") not in KEPT:
            yield f"not submitted: {each.get('kind')} {(each.get('metadata') or {}).get('name', '')}"


def _kept(loaded: Loaded) -> Iterator[Manifest]:
    """Objects beside the job; of workloads, those in KEPT: the job that they become has its own Services."""
    for each in loaded.others:
        if loaded.changes is not None and each.get("kind") not in KEPT:
            continue
        if not each.get("kind") or not (each.get("metadata") or {}).get("name"):
            raise Usage("an object beside the job has no kind or no name, so it cannot be submitted")
        yield _as_written(each)


def _as_written(manifest: Manifest) -> Manifest:
    """Manifest without what the server and kubectl add, if it is from `kubectl get -o yaml`."""
    written = content(manifest)
    if isinstance(notes := written["metadata"].get("annotations"), dict):
        written["metadata"]["annotations"] = _without_kubectls(notes)
    return written


def _without_kubectls(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key != LAST_APPLIED}


def _sorted(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Objects that others refer to come first; else the order is that of the file."""
    order = {kind: rank for rank, kind in enumerate(KEPT)}
    return sorted(manifests, key=lambda each: order.get(each["kind"], len(order)))


def _own_namespace(text: formats.Document | Sequence[str]) -> str:
    if not isinstance(text, formats.Document) or not isinstance(text.data, dict):
        return ""
    metadata = text.data.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else text.data.get("namespace")
    return str(namespace or "")


def _in_namespace(job: Job, namespace: str) -> Job:
    objects = tuple(
        {**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in job.objects
    )
    return replace(job, namespace=namespace, objects=objects)


def _placed(manifest: Manifest, namespace: str) -> Manifest:
    """Manifest in the job's namespace, if it names none; whether its kind has namespaces is known later."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


def _check_again(job: Job) -> None:
    """Options may have made the name too long for its tasks, or given the job two chiefs."""
    checked = formats.check(formats.dump(job, "v1").document)
    if checked.errors:
        raise Invalid(checked.errors)


def _each_role(job: Job, change: podspec.Change) -> Job:
    def changed(role: Role) -> Role:
        return role if role.is_default_server else replace(role, template=change(role.template))

    return replace(job, roles=tuple(changed(role) for role in job.roles))


def _with_image(job: Job, image: str) -> Job:
    if not image:
        return job
    return _each_role(
        job, lambda template: podspec.change_container(template, lambda c: {**c, "image": image})
    )


def _with_variables(job: Job, variables: dict[str, str]) -> Job:
    if not variables:
        return job
    added = [{"name": name, "value": value} for name, value in variables.items()]

    def change(container: Manifest) -> Manifest:
        kept = [each for each in container.get("env") or [] if each.get("name") not in variables]
        return {**container, "env": [*kept, *added]}

    return _each_role(job, lambda template: podspec.change_container(template, change))


# --- rendering


def manifests(prepared: PreparedSubmission, files: tuple[CodeFile, ...] = ()) -> list[Manifest]:
    """All objects, in the order in which they are created. `files`: code that is not in the cluster yet."""
    rendered = [each.manifest for each in tfjob(prepared.job, RenderOptions(code_files=files))]
    return [*prepared.others, *(_placed(each, prepared.job.namespace) for each in rendered)]


def offline(prepared: PreparedSubmission) -> list[Manifest]:
    """All objects, without asking a cluster: the code is in a ConfigMap, as `tfyard render` writes it."""
    return manifests(prepared, code_folder.read(prepared.job, prepared.folder, None))


def with_storage(prepared: PreparedSubmission, classes: Sequence[StorageClass]) -> PreparedSubmission:
    """Chooses the class of a script's claim: for all nodes if the cluster has one, else for one node, on which all
    tasks then run."""
    name, access = choose(classes)
    (claim,) = prepared.job.objects
    spec = {**claim["spec"], "accessModes": [access], **({"storageClassName": name} if name else {})}
    job = replace(prepared.job, objects=({**claim, "spec": spec},))
    if access != ONE or job.size == 1:
        return replace(prepared, job=job)
    note = "all tasks run on one node: no storage class here makes volumes for several"
    return replace(prepared, job=_on_one_node(job), notes=(*prepared.notes, note))


def _on_one_node(job: Job) -> Job:
    sweep = job.labels.get(SWEEP)
    mark = {SWEEP: sweep} if sweep else {JOB_NAME: job.name}  # all trials of a sweep share its claim
    term = {"labelSelector": {"matchLabels": mark}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return _each_role(job, lambda template: {**template, "spec": {**template["spec"], "affinity": affinity}})
