"""The record of a job of a cluster: the client's part in the ConfigMap `<job>-record`, the rest in the job itself.

The ConfigMap is immutable and owned by the job, so it goes with it. The operator does nothing for it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from tfyard import __version__, formats
from tfyard.errors import NoSuchJob
from tfyard.job_input.code_reading import submitter
from tfyard.kube import AlreadyExists, KubeError, NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.logs import devices
from tfyard.model import Job, Manifest
from tfyard.model.callbacks import Say
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.names import CODE_VOLUME, JOB_NAME, PACKAGES_VOLUME, SWEEP
from tfyard.model.origin import CodeState, Origin, Software
from tfyard.overview import attempts, job_record
from tfyard.overview.attempts import Attempt
from tfyard.overview.job_record import LARGEST, JobRecord
from tfyard.overview.job_table import state
from tfyard.overview.parameters import command, parameters
from tfyard.planner.leaders import deciding_task, leading_role
from tfyard.remote.reading import jobs, usage, views
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.refusals import EDIT, granted
from tfyard.views.pods import PodDetails

SUFFIX, RECORD, DIFF = "-record", "record.json", "code.diff"
HEAD = 256 << 10
"""Bytes of a log in which TensorFlow says its version and its devices."""
TAIL = {"tailLines": "20", "limitBytes": str(256 << 10)}
"""The end of the log of an init container, which tells packages and commit in its last lines."""


# --- written by the client


def origin_of(job: Job, code: CodeState) -> Origin:
    """What the client knows of a job that it submits. The folder of the code on its machine stays there."""
    return Origin(
        tfyard=__version__,
        submitter=submitter(),
        at=datetime.now(UTC),
        command=command(job),
        parameters=parameters(job),
        code=replace(code, root=""),
    )


def config_map(tfjob: StoredTFJob, origin: Origin, diff: str) -> Manifest:
    """The ConfigMap; a diff that is too large for it is left out, and the record says so."""
    text = _text(origin)
    if len(text.encode()) + len(diff.encode()) > LARGEST:
        why = f"the diff: it has {len(diff.encode()) >> 10} KiB"
        text, diff = _text(replace(origin, code=replace(origin.code, missing=(why,)))), ""
    owner = {"apiVersion": tfjob.manifest["apiVersion"], "kind": tfjob.manifest["kind"], "name": tfjob.name}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{tfjob.name}{SUFFIX}",
            "namespace": tfjob.namespace,
            "labels": {JOB_NAME: tfjob.name},
            "ownerReferences": [{**owner, "uid": tfjob.uid}],
        },
        "immutable": True,
        "data": {RECORD: text, **({DIFF: diff} if diff else {})},
    }


def write(client: SyncClient, tfjob: StoredTFJob, origin: Origin, diff: str, say: Say) -> None:
    """Writes the record of a job that was just submitted or changed. That this fails costs the job nothing."""
    wanted = config_map(tfjob, origin, diff)
    try:
        _write(client, tfjob, wanted, say)
    except KubeError as problem:
        say(f"the job has no record of its code: {granted(problem, tfjob.namespace, EDIT)}")


def _write(client: SyncClient, tfjob: StoredTFJob, wanted: Manifest, say: Say) -> None:
    creation = requests.create(requests.CONFIG_MAPS.path(tfjob.namespace), wanted)
    try:
        client.send(creation)
    except AlreadyExists:
        path = requests.CONFIG_MAPS.path(tfjob.namespace, wanted["metadata"]["name"])
        known = client.send(requests.get(path))
        if not _is_record(known, tfjob):
            say(f"the job has no record of its code: there is another ConfigMap {wanted['metadata']['name']}")
            return
        with suppress(NotFound):  # it was of a job that is being removed
            client.send(requests.delete(path, uid=known["metadata"]["uid"]))
        client.send(creation)


def _is_record(config_map: Manifest, tfjob: StoredTFJob) -> bool:
    """Whether it is the record of a job of this name, which may have been deleted since."""
    owners = config_map["metadata"].get("ownerReferences") or []
    kind = tfjob.manifest["kind"]
    of_name = any(each.get("name") == tfjob.name and each.get("kind") == kind for each in owners)
    return of_name and RECORD in (config_map.get("data") or {})


def _text(origin: Origin) -> str:
    return msgspec.json.format(msgspec.json.encode(origin)).decode()


# --- read


def read(client: SyncClient, tfjob: StoredTFJob) -> JobRecord:
    """The record without metrics; `problems` names what could not be read."""
    job, status = formats.check(tfjob.manifest).job, tfjob.summary.status
    origin, diff, problems = _origin(client, tfjob, job)
    pods, log = list[PodDetails](), ""
    try:
        pods = views.pods(client, tfjob)
        pod = _deciding(job, pods)
        log = usage.log_of(client, tfjob, pod, {"limitBytes": str(HEAD)}) if pod else ""
        origin = _as_told(client, tfjob, job, pod, origin)
    except KubeError as problem:
        problems.append(f"pods and logs: {problem}")
    tried, now = _attempts(tfjob, job, pods), status.completion_time or datetime.now(UTC)
    return JobRecord(
        name=tfjob.name,
        job=tfjob.name,
        place="cluster",
        namespace=tfjob.namespace,
        state=state(tfjob.summary),
        exit_code=status.exit_code,
        message=status.failure.message if status.failure else "",
        started=status.start_time or tfjob.summary.created,
        ended=status.completion_time,
        origin=origin,
        tensorflow=devices.tensorflow_version(log) or job_record.tensorflow_of(origin.software),
        devices=devices.devices(log),
        roles=job_record.roles(job, digests(job, pods)) if job else (),
        nodes=tuple(dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)),
        attempts=tuple(tried),
        cpu_hours=job_record.reserved_cpu_hours(job, tried, now) if job else None,
        cpu_is="reserved",
        gpu_hours=attempts.gpu_hours(job, tried, now) if job else None,
        diff=diff,
        problems=tuple(problems),
    )


def carry_over(client: SyncClient, old: StoredTFJob, name: str, say: Say) -> None:
    """Writes the record of the job `name`, made from another one: the same code, and its own parameters."""
    origin, diff, _ = _origin(client, old, None)
    try:
        new = jobs.find(client, old.namespace, name)
    except (KubeError, NoSuchJob) as problem:
        say(f"the job has no record of its code: {problem}")
        return
    if job := formats.check(new.manifest).job:
        write(client, new, origin_of(job, origin.code), diff, say)


def submitter_of(client: SyncClient, tfjob: StoredTFJob) -> str:
    """The submitter of the job, as the client has recorded it; empty: it is not known, or may not be read."""
    return _origin(client, tfjob, None)[0].submitter


def digests(job: Job | None, pods: Iterable[PodDetails]) -> dict[str, str]:
    """Role -> its image with its digest, as a kubelet reported it."""
    named = {role.name.lower(): role.name for role in job.roles} if job else {}
    images = {}
    for pod in pods:
        role, status = named.get(pod.task.rpartition("-")[0]), pod.status.container_statuses
        image = next((each.image_id for each in status if each.name == pod.program.name), "")
        if role and image:
            images[role] = image.removeprefix("docker-pullable://")
    return images


def _origin(client: SyncClient, tfjob: StoredTFJob, job: Job | None) -> tuple[Origin, str, list[str]]:
    """The client's part with its diff; of a job without it, what its spec tells."""
    data, problem = _stored(client, tfjob)
    name = record_name(tfjob)
    if not problem:
        try:
            origin = msgspec.json.decode(data[RECORD], type=Origin)
            if SWEEP in tfjob.labels and (job := job or formats.check(tfjob.manifest).job):
                origin = replace(origin, command=command(job), parameters=parameters(job))
            return origin, str(data.get(DIFF) or ""), []
        except (*CORRUPT_JSON, KeyError, TypeError) as error:
            problem = f"the ConfigMap {name} is corrupt ({error}), and is skipped"
    known = Origin(command=command(job), parameters=parameters(job)) if job else Origin()
    return known, "", [problem]


def record_name(tfjob: StoredTFJob) -> str:
    """The name of the ConfigMap. All trials of a sweep have one: their code is the same."""
    return f"{tfjob.labels.get(SWEEP) or tfjob.name}{SUFFIX}"


def _stored(client: SyncClient, tfjob: StoredTFJob) -> tuple[Manifest, str]:
    """The data of the ConfigMap; or why there is none."""
    name = record_name(tfjob)
    try:
        stored = client.send(requests.get(requests.CONFIG_MAPS.path(tfjob.namespace, name)))
    except NotFound:
        return {}, f"its code is unknown: there is no ConfigMap {name}, which `tfyard submit` writes"
    except KubeError as problem:
        return {}, f"its code is unknown: {problem}"
    owners = {each.get("uid") for each in stored["metadata"].get("ownerReferences") or []}
    if owners.isdisjoint({tfjob.uid, *tfjob.owners}):
        return {}, f"its code is unknown: the ConfigMap {name} is of another job"
    return stored.get("data") or {}, ""


def _attempts(tfjob: StoredTFJob, job: Job | None, pods: Sequence[PodDetails]) -> list[Attempt]:
    status = tfjob.summary.status
    return views.all_attempts(job, status, views.attempts_of_pods(job, status, pods))


def _deciding(job: Job | None, pods: Iterable[PodDetails]) -> PodDetails | None:
    """The pod of the task that decides the job."""
    task = deciding_task(job) if job else None
    return next((each for each in pods if task and each.task == task.name), None)


def _as_told(
    client: SyncClient, tfjob: StoredTFJob, job: Job | None, pod: PodDetails | None, origin: Origin
) -> Origin:
    """The client's part, with what tfyard's scripts write to the logs of init containers: the packages that the
    image has, and the commit that was cloned."""
    role = leading_role(job) if job else None
    present = (role.template.get("spec") or {}).get("initContainers") or () if role else ()
    steps = [each for each in present if each.get("name") in (PACKAGES_VOLUME, CODE_VOLUME)]
    logs = [usage.log_of(client, tfjob, pod, {"container": each["name"], **TAIL}) for each in steps if pod]
    commit = next(filter(None, map(job_record.told_commit, logs)), origin.code.commit)
    software = next(filter(None, map(job_record.told_software, logs)), None)
    if software is None and any("git" not in (each.get("command") or ()) for each in steps):
        why = "the init container did not tell them" if pod else "no pod is there that could tell them"
        software = Software(problem=why)
    return replace(origin, code=replace(origin.code, commit=commit), software=software)
