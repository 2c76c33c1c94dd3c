"""What a cluster knows of one job: its pods and warnings first, and only what these call for after that.

Most answers need a few requests, and no user may read everything: what may not be read is noted and does not stop
the answer.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid
from tfyard.install.settings import LABELS
from tfyard.kube import (
    Forbidden,
    NotFound,
    Resource,
    Transient,
    Unauthorized,
    Undecodable,
    Unreachable,
    requests,
)
from tfyard.kube.errors import Answered
from tfyard.kube.kinds import ListPage
from tfyard.kube.requests import DEPLOYMENTS
from tfyard.kube.sync import SyncClient
from tfyard.logs.lines import time_of
from tfyard.logs.position import parted
from tfyard.logs.terminal_text import plain_lines
from tfyard.model import ROLES, Manifest, Role, Status, tensorflow_container
from tfyard.model.names import CODE_VOLUME, GIVEN_AS, JOB_NAME, LEASE_NAME, ROLE_LABELS
from tfyard.overview import queue_place
from tfyard.overview.causes import killed, running, volumes
from tfyard.overview.evidence import Evidence, LogTail, Unreadable, seen
from tfyard.overview.fixes import GivenAs
from tfyard.planner.results import fates
from tfyard.views import objects
from tfyard.views.pods import PodDetails
from tfyard.views.program import conclude, holding
from tfyard.views.tfjob_status import load_status

PREEMPTED = ("PreemptionByScheduler", "Preempted")
LOG_QUERY = {"tailLines": "80", "limitBytes": "65536", "timestamps": "true"}
ASSIGNED = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
PLACES: dict[str, tuple[Resource, bool, dict[str, str]]] = {
    "nodes": (requests.NODES, False, {}),
    "neighbours": (requests.PODS, False, ASSIGNED),
    "claims": (requests.CLAIMS, True, {}),
    "classes": (requests.STORAGE_CLASSES, False, {}),
    "leases": (requests.LEASES, False, {"fieldSelector": f"metadata.name={LEASE_NAME}"}),
    "operators": (DEPLOYMENTS, False, requests.selecting(LABELS)),
    "definitions": (requests.CRDS, False, {"fieldSelector": "metadata.name=tfjobs.kubeflow.org"}),
    "quotas": (requests.QUOTAS, True, {}),
    "slices": (requests.ENDPOINT_SLICES, True, {}),
    "policies": (Resource("networking.k8s.io", "v1", "networkpolicies"), True, {}),
    "workloads": (requests.WORKLOADS, True, {}),
}
"""Field of `Evidence` -> where it is listed, whether in the job's namespace only, and the query."""
VIEWS: dict[str, Any] = {
    "pods": PodDetails,
    "neighbours": PodDetails,
    "events": objects.EventView,
    "nodes": objects.NodeView,
    "claims": objects.Claim,
    "classes": objects.StorageClass,
    "leases": objects.Lease,
    "operators": Manifest,
    "definitions": Manifest,
    "quotas": objects.Quota,
    "slices": objects.Slice,
    "policies": objects.NetworkPolicy,
    "workloads": objects.QueuedWorkload,
    "pending": objects.PendingWorkload,
}
LEADING = [role.lower() for role in ROLES]
"""Roles by what their logs tell: the chief's tells the most."""
MOST_LOGS = 8
"""Logs that are read of a large job: the first tasks tell enough, and each log is a request."""
KEPT_WORDS = 2000
"""Bytes of a message that may be cut: a kubelet keeps 2048 at most, from a whole character on."""


def gather(client: SyncClient, manifest: Manifest) -> Evidence:
    """Evidence about a TFJob as the server has it."""
    evidence = _with_pods(client, _of_manifest(manifest))
    evidence = with_collections(client, evidence, _needed(evidence))
    evidence = _with_pending(client, evidence)
    evidence = _with_logs(client, evidence)
    return with_collections(client, evidence, _of_network(evidence))


def _of_manifest(manifest: Manifest) -> Evidence:
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    status, problem = _status(manifest)
    roles, deleted = tuple(_roles(spec)), meta.get("deletionTimestamp")
    return Evidence(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta.get("uid", ""),
        given_as=given_as(meta.get("annotations") or {}),
        code=next(filter(None, map(_code_folder, roles)), ""),
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        deleted=datetime.fromisoformat(deleted) if deleted else None,
        finalizers=tuple(meta.get("finalizers") or ()),
        generation=meta.get("generation", 0),
        labels=meta.get("labels") or {},
        spec=spec if isinstance(spec, dict) else {},
        roles=roles,
        status=status,
        status_problem=problem,
        stopped=_stopped(manifest, status),
    )


def given_as(annotations: dict[str, str]) -> GivenAs:
    """What `tfyard submit` was given, by the annotations of the job; other programs give TFJobs."""
    known: dict[str, GivenAs] = {"script": "script", "job-file": "job-file"}
    return known.get(annotations.get(GIVEN_AS, ""), "tfjob")


def _code_folder(role: Role) -> str:
    """Mount path of the job's code; empty: the code is in the image."""
    mounts = tensorflow_container(role.template).get("volumeMounts") or ()
    return next((str(each.get("mountPath")) for each in mounts if each.get("name") == CODE_VOLUME), "")


def _stopped(manifest: Manifest, status: Status) -> tuple[str, ...]:
    job = formats.check(manifest).job if status.has("Succeeded") else None
    return tuple(task for task, fate in fates(job, status).items() if fate == "Stopped") if job else ()


def _status(manifest: Manifest) -> tuple[Status, str]:
    """Status of the job, or why it cannot be read."""
    try:
        return load_status(manifest), ""
    except Invalid as problem:
        return Status(), str(problem).replace("\n", "; ")


def _roles(spec: Manifest) -> Iterable[Role]:
    """Roles as far as they can be read: of both forms, and even of a spec that the operator refuses."""
    of_map = spec.get("tfReplicaSpecs")
    pairs = list(of_map.items()) if isinstance(of_map, dict) else []
    of_list = spec.get("replicaSpecs")
    pairs += [(each.get("tfReplicaType", "MASTER"), each) for each in of_list or [] if isinstance(each, dict)]
    for key, fields in pairs:
        if isinstance(fields, dict):
            count, template = fields.get("replicas"), fields.get("template")
            replicas = count if isinstance(count, int) else 1
            name = ROLE_LABELS.get(str(key).lower(), str(key))
            yield Role(name=name, replicas=replicas, template=template if isinstance(template, dict) else {})


def _with_pods(client: SyncClient, evidence: Evidence) -> Evidence:
    labels = requests.selecting({JOB_NAME: evidence.name})
    pods = _list(client, "pods", requests.PODS.path(evidence.namespace), labels)
    former: tuple[PodDetails, ...] = ()
    if not isinstance(pods, Unreadable):
        former = tuple(pod for pod in pods if not pod.is_of(evidence.uid) and _is_leaving(pod))
        pods = tuple(pod for pod in pods if pod.is_of(evidence.uid))
    evidence = replace(evidence, pods=pods, former=former)
    is_probed = any(killed.has_probes(evidence, end.task) for end in evidence.endings())
    if evidence.status.is_finished and not is_probed:
        return evidence
    return replace(evidence, events=_events(client, evidence, is_probed))


def _is_leaving(pod: PodDetails) -> bool:
    return bool(pod.task) and pod.metadata.deletion_timestamp is not None


def _events(client: SyncClient, evidence: Evidence, is_probed: bool) -> Any:
    """Warnings, and the normal events about preempted pods and containers that a probe killed."""
    path = requests.EVENTS.path(evidence.namespace)
    events = _list(client, "events", path, requests.selecting(fields={"type": "Warning"}))
    if isinstance(events, Unreadable):
        return events
    is_disrupted = any(pod.taken_away for pod in seen(evidence.pods))
    was_preempted = any(ending.reason in PREEMPTED for ending in evidence.status.endings)
    reasons = {"Preempted": is_disrupted or was_preempted, killed.PROBE_KILLS: is_probed}
    for reason in (each for each, is_needed in reasons.items() if is_needed):
        events += seen(_list(client, "events", path, requests.selecting(fields={"reason": reason})))
    return events


def with_collections(client: SyncClient, evidence: Evidence, fields: set[str]) -> Evidence:
    """Adds fields of `Evidence` by one request each. Lists that may not be read are noted."""
    lists: dict[str, Any] = {}
    for field in sorted(fields):
        resource, is_in_namespace, query = PLACES[field]
        path = resource.path(evidence.namespace if is_in_namespace else "")
        lists[field] = _list(client, field, path, query)
    return replace(evidence, **lists)


def _with_pending(client: SyncClient, evidence: Evidence) -> Evidence:
    """Adds what waits in the queue of a job that Kueue has taken up."""
    place = queue_place.of_job(evidence)
    if place is None or queue_place.workload_of(evidence) is None:
        return evidence
    path = requests.QUEUE_VISIBILITY.path(evidence.namespace, place.queue, "pendingworkloads")
    return replace(evidence, pending=_list(client, "pending", path, {}))


def _list(client: SyncClient, field: str, path: str, query: dict[str, str]) -> Any:
    """All objects, or why they cannot be read. A kind that this cluster does not have has none."""
    name = path.rpartition("/")[2]
    try:
        return tuple(client.send(requests.get(path, query), _pages(field)).items or ())
    except NotFound:
        return ()
    except Forbidden:
        return Unreadable(f"you may not list {name}")
    except (Unreachable, Unauthorized):
        raise
    except (Answered, Undecodable) as problem:
        return Unreadable(str(problem))


@cache
def _pages(field: str) -> "msgspec.json.Decoder[ListPage[Any]]":
    """Decoder of a field, made when it is needed: few are, and each takes a while."""
    page: Any = ListPage
    return msgspec.json.Decoder(page[VIEWS[field]])


def _with_logs(client: SyncClient, evidence: Evidence) -> Evidence:
    """Adds logs; after one that permissions or the kubelet do not let read, no other is tried."""
    tails: dict[str, LogTail] = {}
    for pod in _with_news(evidence):
        held_by = holding(pod)
        query = {**LOG_QUERY, "container": held_by.name if held_by else pod.trainer.name}
        path = requests.PODS.path(evidence.namespace, pod.name, "log")
        try:
            tails[pod.task] = tail(client.read(requests.get(path, query)))
        except Unreachable:
            raise
        except Forbidden:
            return replace(evidence, logs=tails, unread=("logs: you may not read them (get pods/log)",))
        except Transient as problem:
            return replace(evidence, logs=tails, unread=(f"logs: {problem}",))
        except Answered:
            continue  # the pod is gone, or has no log yet
    return replace(evidence, logs=tails)


def tail(log: bytes) -> LogTail:
    """Text of a log with timestamps, and the last of them."""
    lines = [parted(line) for line in log.removesuffix(b"\n").split(b"\n")]
    last = next((stamp for stamp, _ in reversed(lines) if stamp), b"")
    return LogTail.of(plain_lines(b"\n".join(text for _, text in lines)), time_of(last.decode()))


# --- which requests follow, by what is known


def _needed(evidence: Evidence) -> set[str]:
    """Fields of `Evidence` that are needed, after its pods are known."""
    if evidence.status.is_finished:
        return set()
    messages = [pod.unscheduled.message for pod in evidence.waiting if pod.unscheduled]
    needed = set[str]()
    if any(re.search(volumes.CLAIM_PATTERN, message) for message in messages):
        needed |= {"claims", "classes"}
    if any(message and not re.search(volumes.CLAIM_PATTERN, message) for message in messages):
        needed.add("nodes")
    if any("Insufficient" in message for message in messages):
        needed.add("neighbours")
    if not evidence.status.conditions or not (evidence.tasks or _is_explained(evidence)):
        needed |= {"leases", "operators"}
    if not evidence.status.conditions:
        needed.add("definitions")
    if queue_place.of_job(evidence):
        needed.add("workloads")
    return needed


def _is_explained(evidence: Evidence) -> bool:
    """Whether it is known why no pods are seen."""
    return (
        isinstance(evidence.pods, Unreadable)
        or evidence.status.has("Blocked")
        or evidence.status.has("Suspended")
    )


def _of_network(evidence: Evidence) -> set[str]:
    """Fields of `Evidence` about the network, after the logs are known."""
    return {"slices", "policies"} if running.is_unreached(evidence) else set()


def _with_news(evidence: Evidence) -> list[PodDetails]:
    """Pods whose logs are needed: those that run, or that failed without a whole message."""
    running = () if evidence.status.is_finished else evidence.running
    pods = [pod for pod in evidence.tasks if pod in running or _is_mute(pod) or _is_prepared(pod)]
    return sorted(pods, key=_importance)[:MOST_LOGS]


def _importance(pod: PodDetails) -> tuple[object, ...]:
    """Sort key: pods that failed, then those that lead the training."""
    role, _, index = pod.task.rpartition("-")
    rank = LEADING.index(role) if role in LEADING else len(LEADING)
    return not _is_mute(pod), rank, int(index) if index.isdigit() else 0


def _is_prepared(pod: PodDetails) -> bool:
    """Whether its init container runs."""
    held_by = holding(pod)
    return held_by is not None and held_by.state.running is not None


def _is_mute(pod: PodDetails) -> bool:
    """The pod failed without a message, or with its end only: a traceback begins with the user's own lines."""
    ended = conclude(pod).failure
    is_cut = ended is not None and len(ended.message.encode()) >= KEPT_WORDS
    return ended is not None and (not ended.message or is_cut) and ended.reason != "OOMKilled"
