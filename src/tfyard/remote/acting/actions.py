"""Actions on a job of a cluster: stop, resume, restart tasks, scale, rerun, delete.

Each function checks whether the action is possible, and returns a `ClusterIntent`: what goes, what stays, and the
requests that do it. `perform` sends them. So the user can be asked in between, and no action is half done.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from tfyard import formats
from tfyard.errors import NotPossible, TfyardError, Usage
from tfyard.formats.tfjob import edits
from tfyard.formats.tfjob.edits import Edit
from tfyard.kube import Conflict, Forbidden, NotFound, Refused, Request, Unprocessable, requests
from tfyard.kube.requests import FIELD_MANAGER, Patch
from tfyard.kube.sync import SyncClient
from tfyard.logs.lines import chosen
from tfyard.model import CHIEF, MASTER, Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import KEEPS_PODS
from tfyard.model.spelling import did_you_mean
from tfyard.overview.job_table import state
from tfyard.overview.waiting import TIMEOUT_CODE
from tfyard.remote.acting import reruns
from tfyard.remote.acting.job_objects import Belongings, counted, queue_of
from tfyard.remote.logs import pod_starts
from tfyard.remote.reading import job_records, jobs
from tfyard.remote.reading.jobs import Scope, StoredTFJob
from tfyard.views.pods import PodView
from tfyard.views.program import waits_for

WRITER = {"fieldManager": FIELD_MANAGER}
LOOK_EVERY = 0.5
"""Seconds between two looks whether an action is complete."""


class ClusterIntent(Struct, frozen=True, kw_only=True):
    """An action that is about to be performed."""

    verb: str
    tfjob: StoredTFJob
    goes: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Other facts for the user."""
    requests: tuple[Request, ...] = ()
    """Requests of the action; empty: nothing is left to do, and `notes` say so."""
    pods: dict[str, str] = {}
    """Task -> uid of its pod, for pods that go."""
    becomes: Manifest = {}
    """The job afterwards, or the new one; empty: its spec stays as it is."""
    made: str = ""
    """The name of the new job, if there is one."""


def compared(intent: ClusterIntent) -> tuple[str, str]:
    """The spec before and after, as YAML."""
    old, new = ({"spec": each["spec"]} for each in (intent.tfjob.manifest, intent.becomes))
    return formats.to_yaml(old), formats.to_yaml(new)


def perform(client: SyncClient, intent: ClusterIntent, say: Say = lambda _text: None) -> None:
    for request in intent.requests:
        try:
            client.send(request)
        except (NotFound, Conflict, Unprocessable) as problem:
            if intent.verb != "restart":
                raise _of_another(intent.tfjob, problem) from problem
            # A pod to restart is gone already, or replaced.
    if intent.made:
        job_records.carry_over(client, intent.tfjob, intent.made, say)


def _of_another(tfjob: StoredTFJob, problem: Refused) -> TfyardError:
    """A clearer error than the server's, if the job was deleted or replaced since it was read."""
    is_other = isinstance(problem, NotFound) or "uid" in problem.status.message.lower()
    return (
        NotPossible(f"{tfjob.name} was deleted or replaced in the meantime; try again")
        if is_other
        else problem
    )


# --- stop and resume


def stop(client: SyncClient, tfjob: StoredTFJob, *, keeps_pods: bool = False) -> ClusterIntent:
    """Suspends a job: its pods go, the job stays and can be resumed. A job that Kueue has admitted is stopped by
    Kueue, which would resume it otherwise. `keeps_pods`: they end and stay, with their logs."""
    _require_unfinished(tfjob, "stop")
    if edits.has_list(tfjob.manifest):
        text = f"{tfjob.name} has the form of v1alpha1, which cannot be suspended"
        raise NotPossible(f"{text}; `tfyard delete {tfjob.name}` ends it, and its claims stay")
    queue = queue_of(client, tfjob)
    notes: tuple[str, ...]
    if queue.workload and queue.workload.is_active:
        sent, notes = (queue.workload.activation(active=False),), (queue.told_when_stopped,)
    elif queue.workload or edits.is_suspended(tfjob.manifest):
        return ClusterIntent(verb="stop", tfjob=tfjob, notes=("it is stopped already", *queue.waits))
    else:
        sent, notes = (_patch(tfjob, edits.suspended(tfjob.manifest)),), queue.unknown
    has = Belongings(client, tfjob)
    pods = has.running()
    intent = ClusterIntent(
        verb="stop",
        tfjob=tfjob,
        goes=has.leaving(pods),
        stays=("the job, its restarts and which tasks have finished", *has.data()),
        notes=(*notes, *has.unseen),
        requests=(*((_keeping_pods(tfjob),) if keeps_pods else ()), *sent),
        pods=_uids(pods),
    )
    return _checked(client, intent)


def resume(client: SyncClient, tfjob: StoredTFJob) -> ClusterIntent:
    _require_unfinished(tfjob, "resume")
    queue, suspended = queue_of(client, tfjob), edits.is_suspended(tfjob.manifest)
    notes: tuple[str, ...]
    if queue.workload and suspended:
        if queue.workload.is_active:
            return ClusterIntent(verb="resume", tfjob=tfjob, notes=queue.waits)
        sent, notes = (queue.workload.activation(active=True),), (queue.told_when_resumed,)
    elif not suspended:
        return ClusterIntent(verb="resume", tfjob=tfjob, notes=("it is not stopped",))
    else:
        sent, notes = (_patch(tfjob, edits.resumed(tfjob.manifest)),), queue.unknown
    stays = ("what has finished: those tasks do not run again", *Belongings(client, tfjob).data())
    intent = ClusterIntent(verb="resume", tfjob=tfjob, stays=stays, notes=notes, requests=sent)
    return _checked(client, intent)


# --- delete


def delete(client: SyncClient, tfjob: StoredTFJob) -> ClusterIntent:
    """The job goes with all that belongs to it. Claims stay, unless the job is their owner."""
    has = Belongings(client, tfjob)
    pods, owned = has.pods(), has.owned_claims()
    intent = ClusterIntent(
        verb="delete",
        tfjob=tfjob,
        goes=(
            f"the job {tfjob.name}",
            *(f"{each} and their logs" for each in counted("pod", [pod.name for pod in pods])),
            *has.data(owned),
        ),
        stays=tuple(has.data([claim for claim in has.claims() if claim not in owned])),
        notes=has.unseen,
        requests=(requests.delete(tfjob.path, uid=tfjob.uid, propagation="Background"),),
        pods=_uids(pods),
    )
    return _checked(client, intent)


# --- restart


def restart(client: SyncClient, tfjob: StoredTFJob, words: Sequence[str]) -> ClusterIntent:
    """The pods of these tasks are deleted; the operator replaces them, which costs no retry."""
    _require_unfinished(tfjob, "restart")
    if edits.is_suspended(tfjob.manifest):
        raise NotPossible(f"{tfjob.name} is stopped; `tfyard resume {tfjob.name}` starts its tasks")
    has = Belongings(client, tfjob)
    if has.job is None:
        raise NotPossible(f"{tfjob.name} cannot be read: `tfyard describe {tfjob.name}` says why")
    tasks = chosen(words, [task.name for task in has.job.tasks()])
    pods = [pod for pod in has.running() if pod.task in tasks]
    missing = [task for task in tasks if task not in {pod.task for pod in pods}]
    if not pods:
        text = (*has.unseen, *(f"nothing runs of {each}" for each in counted("task", missing)))[0]
        raise NotPossible(f"{tfjob.name}: {text}; `tfyard describe {tfjob.name}` says more")
    intent = ClusterIntent(
        verb="restart",
        tfjob=tfjob,
        goes=has.leaving(pods),
        stays=("the other tasks, and the retries that are left", *has.data()),
        notes=tuple(f"not restarted, because they do not run: {each}" for each in counted("task", missing)),
        requests=tuple(_pod_deletion(tfjob, pod) for pod in pods),
        pods=_uids(pods),
    )
    return _checked(client, intent)


# --- scale and rerun


def scale(client: SyncClient, tfjob: StoredTFJob, counts: Mapping[str, int]) -> ClusterIntent:
    """`counts`: role, such as Worker -> its new number of tasks."""
    _require_unfinished(tfjob, "scale")
    known = _require_roles(tfjob, counts)
    changed = {name: count for name, count in counts.items() if count != known[name].replicas}
    if not changed:
        return ClusterIntent(verb="scale", tfjob=tfjob, notes=("it has as many tasks already",))
    if not any({**{name: role.replicas for name, role in known.items()}, **changed}.values()):
        ways = f"`tfyard stop {tfjob.name}` stops it, `tfyard delete {tfjob.name}` deletes it"
        raise NotPossible(f"{tfjob.name} would have no task: a job has at least one; {ways}")
    for name, count in changed.items():
        if name in (CHIEF, MASTER) and count != 1:
            raise NotPossible(f"{tfjob.name}: {name.lower()} cannot be scaled to {count}: a job has one")
    cluster = tfjob.summary.status.cluster
    if cluster is not None and cluster.gang == "core" and not edits.is_suspended(tfjob.manifest):
        way = f"stop {tfjob.name}, scale it and resume it"
        raise NotPossible(f"{tfjob.name} is scheduled as one gang, whose size is fixed while it runs; {way}")
    goes = [f"{n.lower()}-{i}" for n, count in changed.items() for i in range(count, known[n].replicas)]
    intent = ClusterIntent(
        verb="scale",
        tfjob=tfjob,
        goes=counted("task", goes),
        stays=tuple(f"{n.lower()}: {known[n].replicas} -> {count} tasks" for n, count in changed.items()),
        notes=_scaling_notes(tfjob),
        requests=(_patch(tfjob, edits.scaled(tfjob.manifest, changed)),),
        becomes=edits.edited(tfjob.manifest, edits.scaled(tfjob.manifest, changed)),
    )
    return _checked(client, intent)


def _scaling_notes(tfjob: StoredTFJob) -> tuple[str, ...]:
    spec, cluster = tfjob.manifest["spec"], tfjob.summary.status.cluster
    notes = []
    if not spec.get("enableDynamicWorker"):
        notes.append(
            f"tasks that run keep their list of peers (TF_CONFIG); `tfyard restart {tfjob.name} --all` renews it"
        )
    if cluster is not None and cluster.queued:
        text = f"Kueue admitted {cluster.queued} pods and no more"
        notes.append(f"{text}; `tfyard stop` and `tfyard resume` queue the job with its new size")
    return tuple(notes)


def rerun(
    client: SyncClient, tfjob: StoredTFJob, changes: reruns.RerunChanges, *, is_exact: bool = False
) -> ClusterIntent:
    """A new job of the same spec. The old one stays as it is. `is_exact`: with the code and images that it ran."""
    _require_roles(tfjob, changes.counts)
    taken = {each.job.name for each in jobs.summaries(client, Scope(tfjob.namespace))}
    name = changes.name or reruns.next_name(tfjob.manifest, taken)
    if name in taken:
        raise NotPossible(f"there is a job {name} already; choose another name, or none")
    notes = tuple[str, ...]()
    if is_exact:
        changes, notes = reruns.exact(client, tfjob, changes)
    document = reruns.manifest(tfjob.manifest, name, changes)
    still = "" if tfjob.summary.status.is_finished else f", which has not finished: {_state(tfjob)}"
    shared = [f"the claim {claim}, which both jobs use" for claim in Belongings(client, tfjob).claims()]
    intent = ClusterIntent(
        verb="rerun",
        tfjob=tfjob,
        stays=(f"{tfjob.name}{still}", *shared),
        notes=notes,
        requests=(requests.create(tfjob.resource.path(tfjob.namespace), document, WRITER),),
        becomes=document,
        made=name,
    )
    return _checked(client, intent)


# --- what is refused


def _checked(client: SyncClient, intent: ClusterIntent) -> ClusterIntent:
    """Asks the server by a dry run: it knows what the user may do, and which fields cannot change."""
    tfjob, first = intent.tfjob, intent.requests[0]
    try:
        answer = client.send(requests.dry_run(first))
    except Forbidden as problem:
        raise NotPossible(f"you may not {intent.verb} {tfjob.name}: {problem}") from problem
    is_job = isinstance(answer, dict) and answer.get("kind") == tfjob.manifest.get("kind")
    errors = formats.check(answer).errors if is_job and first.method != "DELETE" else ()
    if errors:
        text = "; ".join(problem.message for problem in errors)
        raise NotPossible(f"{tfjob.name} would no longer be a valid job: {text}")
    return intent


def _require_unfinished(tfjob: StoredTFJob, verb: str) -> None:
    name, status = tfjob.name, tfjob.summary.status
    if tfjob.manifest["metadata"].get("deletionTimestamp"):
        raise NotPossible(f"{name} is being deleted")
    if status.is_finished:
        again = f"`tfyard rerun {name}` starts a new job of the same spec"
        raise NotPossible(f"{name} has finished ({_state(tfjob)}), so there is nothing to {verb}; {again}")


def _require_roles(tfjob: StoredTFJob, counts: Iterable[str]) -> dict[str, edits.StoredRole]:
    known = edits.roles(tfjob.manifest)
    for name in counts:
        if name not in known:
            hint = did_you_mean(name.lower(), [role.lower() for role in known])
            raise Usage(f"{tfjob.name} has no role {name.lower()}; {hint}")
    return known


def _state(tfjob: StoredTFJob) -> str:
    return state(tfjob.summary)


# --- requests


def _patch(tfjob: StoredTFJob, changes: list[Edit]) -> Request:
    """The patch has the uid of the job, which the server compares: a new job of the same name is refused."""
    own = Edit(("metadata", "uid"), tfjob.uid)
    return requests.patch(tfjob.path, edits.patch([own, *changes]), Patch.JSON, WRITER)


def _keeping_pods(tfjob: StoredTFJob) -> Request:
    """Sent before the job is suspended, because the operator acts at once."""
    marked = {"metadata": {"uid": tfjob.uid, "annotations": {KEEPS_PODS: "true"}}}
    return requests.patch(tfjob.path, marked, query=WRITER)


def _pod_deletion(tfjob: StoredTFJob, pod: PodView) -> Request:
    return requests.delete(requests.PODS.path(tfjob.namespace, pod.name), uid=pod.metadata.uid)


def _uids(pods: Iterable[PodView]) -> dict[str, str]:
    return {pod.task: pod.metadata.uid for pod in pods}


# --- waiting for the effect: pods are gone, or new ones run


class TimeOver(TfyardError):
    """The wait timed out; the exit code is that of `timeout` and `tfyard wait`."""

    exit_code = TIMEOUT_CODE


def until_done(client: SyncClient, intent: ClusterIntent, say: Say, timeout: float) -> None:
    """Waits for the effect; `say` is called with what is missing, once per change."""
    look = _unstarted if intent.verb == "restart" else _left
    deadline, shown = time.monotonic() + timeout, ""
    for waiting in _repeated(lambda: look(client, intent)):
        if not waiting:
            return
        if waiting != shown:
            say(f"waiting: {waiting}")
            shown = waiting
        if time.monotonic() > deadline:
            raise TimeOver(f"{intent.tfjob.name}: timed out, still waiting: {shown}")


def _repeated(look: Callable[[], str]) -> Iterator[str]:
    while True:
        yield look()
        time.sleep(LOOK_EVERY)


def _left(client: SyncClient, intent: ClusterIntent) -> str:
    """What still has to go, in words; empty: nothing."""
    if intent.verb == "delete" and _now(client, intent.tfjob) is not None:
        return f"the job {intent.tfjob.name} to be gone"
    pods = Belongings(client, intent.tfjob).pods()
    here = {pod.metadata.uid for pod in pods if intent.verb == "delete" or not pod.is_over or _goes(pod)}
    return "".join(
        f"{each} to be gone" for each in counted("pod", [t for t, uid in intent.pods.items() if uid in here])
    )


def _goes(pod: PodView) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _unstarted(client: SyncClient, intent: ClusterIntent) -> str:
    """First task that does not run again yet, and why; empty: all run."""
    now = _now(client, intent.tfjob)
    if now is None or now.summary.status.is_finished:
        raise TfyardError(
            f"{intent.tfjob.name} has ended before its tasks ran again; `tfyard why` may say why"
        )
    pods = Belongings(client, now).pods()
    new = {pod.task: pod for pod in pods if pod.metadata.uid != intent.pods.get(pod.task)}
    for task in intent.pods:
        if task not in new:
            return f"{task}: its old pod ends"
        if not pod_starts.has_begun(new[task]):
            return f"{task}: {waits_for(new[task])}"
    return ""


def _now(client: SyncClient, tfjob: StoredTFJob) -> StoredTFJob | None:
    """The job as it is now; None: it is gone, even if there is a new one of its name."""
    manifest = client.find(tfjob.path)
    return (
        StoredTFJob(tfjob.resource, manifest)
        if manifest and manifest["metadata"]["uid"] == tfjob.uid
        else None
    )
