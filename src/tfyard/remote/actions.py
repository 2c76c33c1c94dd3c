"""What people do to a job of a cluster: stop, resume, restart tasks, scale, rerun, delete.

Each function looks, refuses what cannot be, and returns an `Intent`: what goes, what stays, and the requests that
do it. `perform` sends them. So a person can be asked in between, and nothing is half done because of a mistake.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from tfyard import formats
from tfyard.errors import TfyardError, Usage
from tfyard.formats.declarations.reading import did_you_mean
from tfyard.formats.tfjob import edits
from tfyard.formats.tfjob.edits import Edit
from tfyard.kube import Conflict, Forbidden, NotFound, Refused, Request, Unprocessable, requests
from tfyard.kube.requests import FIELD_MANAGER, Patch
from tfyard.kube.sync import SyncClient
from tfyard.model import CHIEF, MASTER
from tfyard.overview.job_table import state
from tfyard.overview.log_lines import chosen
from tfyard.overview.objects import Pod

from . import jobs, reruns
from .job_objects import Belongings, counted, queue_of
from .jobs import Found, Scope

WRITER = {"fieldManager": FIELD_MANAGER}


class NotPossible(TfyardError):
    """This cannot be done to this job, or not by this user."""


class Intent(Struct, frozen=True, kw_only=True):
    """What is about to be done."""

    verb: str
    found: Found
    goes: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What else there is to know."""
    requests: tuple[Request, ...] = ()
    """None: it is so already, and `notes` say it."""
    pods: dict[str, str] = {}
    """Task -> the uid of its pod, of those that go."""
    made: str = ""
    """The name of the new job, if there is one."""


def perform(client: SyncClient, intent: Intent) -> None:
    for request in intent.requests:
        try:
            client.send(request)
        except (NotFound, Conflict, Unprocessable) as problem:
            if intent.verb != "restart":
                raise _of_another(intent.found, problem) from problem
            # Else that pod is gone already, or replaced.


def _of_another(found: Found, problem: Refused) -> TfyardError:
    """If the job is not the one that was looked at, in clearer words than the server's."""
    is_other = isinstance(problem, NotFound) or "uid" in problem.status.message.lower()
    return (
        NotPossible(f"{found.name} was deleted or replaced in the meantime; try again")
        if is_other
        else problem
    )


# --- stop and resume


def stop(client: SyncClient, found: Found) -> Intent:
    """Its pods go, the job stays and can be resumed. What Kueue has admitted, Kueue must stop: it resumes a job
    that somebody else suspends."""
    _require_unfinished(found, "stop")
    if edits.has_list(found.manifest):
        text = f"{found.name} has the form of v1alpha1, which cannot be suspended"
        raise NotPossible(f"{text}; `tfyard delete {found.name}` ends it, and its claims stay")
    queue = queue_of(client, found)
    notes: tuple[str, ...]
    if queue.workload and queue.workload.is_active:
        sent, notes = (queue.workload.activation(active=False),), (queue.told_when_stopped,)
    elif queue.workload or edits.is_suspended(found.manifest):
        return Intent(verb="stop", found=found, notes=("it is stopped already", *queue.waits))
    else:
        sent, notes = (_patch(found, edits.suspended(found.manifest)),), queue.unknown
    has = Belongings(client, found)
    pods = has.running()
    intent = Intent(
        verb="stop",
        found=found,
        goes=has.leaving(pods),
        stays=("the job, its restarts and which tasks have finished", *has.data()),
        notes=(*notes, *has.unseen),
        requests=sent,
        pods=_uids(pods),
    )
    return _checked(client, intent)


def resume(client: SyncClient, found: Found) -> Intent:
    _require_unfinished(found, "resume")
    queue, suspended = queue_of(client, found), edits.is_suspended(found.manifest)
    notes: tuple[str, ...]
    if queue.workload and suspended:
        if queue.workload.is_active:
            return Intent(verb="resume", found=found, notes=queue.waits)
        sent, notes = (queue.workload.activation(active=True),), (queue.told_when_resumed,)
    elif not suspended:
        return Intent(verb="resume", found=found, notes=("it is not stopped",))
    else:
        sent, notes = (_patch(found, edits.resumed(found.manifest)),), queue.unknown
    stays = ("what has finished: those tasks do not run again", *Belongings(client, found).data())
    intent = Intent(verb="resume", found=found, stays=stays, notes=notes, requests=sent)
    return _checked(client, intent)


# --- delete


def delete(client: SyncClient, found: Found) -> Intent:
    """With all that belongs to it. Claims do not, unless somebody made the job their owner."""
    has = Belongings(client, found)
    pods, owned = has.pods(), has.owned_claims()
    intent = Intent(
        verb="delete",
        found=found,
        goes=(
            f"the job {found.name}",
            *(f"{each} and their logs" for each in counted("pod", [pod.name for pod in pods])),
            *has.data(owned),
        ),
        stays=tuple(has.data([claim for claim in has.claims() if claim not in owned])),
        notes=has.unseen,
        requests=(requests.delete(found.path, uid=found.uid, propagation="Background"),),
        pods=_uids(pods),
    )
    return _checked(client, intent)


def selected(client: SyncClient, namespace: str, selector: str) -> list[Found]:
    """All jobs with these labels."""
    found = jobs.manifests(client, Scope(namespace, selector))
    if not found:
        raise jobs.Missing(f"no TFJob of the namespace {namespace} has the labels {selector}")
    return found


# --- restart


def restart(client: SyncClient, found: Found, words: Sequence[str]) -> Intent:
    """The pods of these tasks are deleted; the operator replaces them, which costs no retry."""
    _require_unfinished(found, "restart")
    if edits.is_suspended(found.manifest):
        raise NotPossible(f"{found.name} is stopped; `tfyard resume {found.name}` starts its tasks")
    has = Belongings(client, found)
    if has.job is None:
        raise NotPossible(f"{found.name} cannot be read: `tfyard describe {found.name}` says why")
    tasks = chosen(words, [task.name for task in has.job.tasks()])
    pods = [pod for pod in has.running() if pod.task in tasks]
    missing = [task for task in tasks if task not in {pod.task for pod in pods}]
    if not pods:
        text = (*has.unseen, *(f"nothing runs of {each}" for each in counted("task", missing)))[0]
        raise NotPossible(f"{found.name}: {text}; `tfyard describe {found.name}` says more")
    intent = Intent(
        verb="restart",
        found=found,
        goes=has.leaving(pods),
        stays=("the other tasks, and the retries that are left", *has.data()),
        notes=tuple(f"not restarted, because they do not run: {each}" for each in counted("task", missing)),
        requests=tuple(_pod_deletion(found, pod) for pod in pods),
        pods=_uids(pods),
    )
    return _checked(client, intent)


# --- scale and rerun


def scale(client: SyncClient, found: Found, counts: Mapping[str, int]) -> Intent:
    """Role, such as Worker -> how many tasks it shall have."""
    _require_unfinished(found, "scale")
    known = _require_roles(found, counts)
    changed = {name: count for name, count in counts.items() if count != known[name].replicas}
    if not changed:
        return Intent(verb="scale", found=found, notes=("it has as many tasks already",))
    for name, count in changed.items():
        if name in (CHIEF, MASTER) and count != 1:
            raise NotPossible(f"{found.name}: {name.lower()} cannot be scaled to {count}: a job has one")
    cluster = found.summary.status.cluster
    if cluster is not None and cluster.gang == "core" and not edits.is_suspended(found.manifest):
        way = f"stop {found.name}, scale it and resume it"
        raise NotPossible(f"{found.name} is scheduled as one gang, whose size is fixed while it runs; {way}")
    goes = [f"{n.lower()}-{i}" for n, count in changed.items() for i in range(count, known[n].replicas)]
    intent = Intent(
        verb="scale",
        found=found,
        goes=counted("task", goes),
        stays=tuple(f"{n.lower()}: {known[n].replicas} -> {count} tasks" for n, count in changed.items()),
        notes=_scaling_notes(found),
        requests=(_patch(found, edits.scaled(found.manifest, changed)),),
    )
    return _checked(client, intent)


def _scaling_notes(found: Found) -> tuple[str, ...]:
    spec, cluster = found.manifest["spec"], found.summary.status.cluster
    notes = []
    if not spec.get("enableDynamicWorker"):
        notes.append(
            f"tasks that run keep their list of peers (TF_CONFIG); `tfyard restart {found.name} --all` renews it"
        )
    if cluster is not None and cluster.queued:
        text = f"Kueue admitted {cluster.queued} pods and no more"
        notes.append(f"{text}; `tfyard stop` and `tfyard resume` queue the job with its new size")
    return tuple(notes)


def rerun(client: SyncClient, found: Found, changes: reruns.Changes) -> Intent:
    """A new job of the same spec. The old one stays as it is."""
    _require_roles(found, changes.counts)
    taken = {each.job.name for each in jobs.summaries(client, Scope(found.namespace))}
    name = changes.name or reruns.next_name(found.manifest, taken)
    if name in taken:
        raise NotPossible(f"there is a job {name} already; choose another --name, or none")
    document = reruns.manifest(found.manifest, name, changes)
    still = "" if found.summary.status.is_finished else f", which has not finished: {_state(found)}"
    shared = [f"the claim {claim}, which both jobs use" for claim in Belongings(client, found).claims()]
    intent = Intent(
        verb="rerun",
        found=found,
        stays=(f"{found.name}{still}", *shared),
        requests=(requests.create(found.resource.path(found.namespace), document, WRITER),),
        made=name,
    )
    return _checked(client, intent)


# --- what is refused


def _checked(client: SyncClient, intent: Intent) -> Intent:
    """The server is asked first, without doing anything: it knows who may do what, and what cannot change."""
    found, first = intent.found, intent.requests[0]
    try:
        answer = client.send(requests.dry_run(first))
    except Forbidden as problem:
        raise NotPossible(f"you may not {intent.verb} {found.name}: {problem}") from problem
    is_job = isinstance(answer, dict) and answer.get("kind") == found.manifest.get("kind")
    errors = formats.check(answer).errors if is_job and first.method != "DELETE" else ()
    if errors:
        text = "; ".join(problem.message for problem in errors)
        raise NotPossible(f"{found.name} would no longer be a valid job: {text}")
    return intent


def _require_unfinished(found: Found, verb: str) -> None:
    name, status = found.name, found.summary.status
    if found.manifest["metadata"].get("deletionTimestamp"):
        raise NotPossible(f"{name} is being deleted")
    if status.is_finished:
        again = f"`tfyard rerun {name}` starts a new job of the same spec"
        raise NotPossible(f"{name} has finished ({_state(found)}), so there is nothing to {verb}; {again}")


def _require_roles(found: Found, counts: Iterable[str]) -> dict[str, edits.StoredRole]:
    known = edits.roles(found.manifest)
    for name in counts:
        if name not in known:
            hint = did_you_mean(name.lower(), [role.lower() for role in known])
            raise Usage(f"{found.name} has no role {name.lower()}; {hint}")
    return known


def _state(found: Found) -> str:
    return state(found.summary) or "Pending"


# --- requests


def _patch(found: Found, changes: list[Edit]) -> Request:
    """With its uid, which the server compares: never a new job of the same name."""
    own = Edit(("metadata", "uid"), found.uid)
    return requests.patch(found.path, edits.patch([own, *changes]), Patch.JSON, WRITER)


def _pod_deletion(found: Found, pod: Pod) -> Request:
    return requests.delete(requests.PODS.path(found.namespace, pod.name), uid=pod.metadata.uid)


def _uids(pods: Iterable[Pod]) -> dict[str, str]:
    return {pod.task: pod.metadata.uid for pod in pods}
