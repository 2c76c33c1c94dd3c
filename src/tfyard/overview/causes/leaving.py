"""Causes of tasks whose pod is being taken away, or whose node does not answer: no other pod of a task can start
before the former one is gone."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.causes import killed
from tfyard.overview.causes.run_policy import without_finalizers
from tfyard.overview.evidence import End, Evidence, seen
from tfyard.overview.wording import age
from tfyard.views.objects import EventView
from tfyard.views.pods import PodDetails

OVERDUE = timedelta(seconds=15)
"""Time that a kubelet may need after a grace period."""
MOMENT = timedelta(seconds=10)
"""Time in which Kubernetes writes the condition of a pod, and the warning about it."""
LESS_TIME = "it has this time to save a checkpoint; job file: a smaller `stopGrace:` gives it less"
UNSEEN = "NodeNotReady"
"""The reason of the warning by which Kubernetes tells that the node of a pod does not answer."""


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    for pod in seen(evidence.pods):
        if pod.task and _is_wanted(evidence, pod):
            yield from _of_pod(evidence, pod, now)
    for pod in evidence.former:
        yield _held(evidence, pod) if _is_held(pod, now) else _ending(pod, now, f"the former {evidence.name}")


def _is_wanted(evidence: Evidence, pod: PodDetails) -> bool:
    """Whether the job still has the task: it may have been scaled down."""
    role, _, index = pod.task.rpartition("-")
    return any(each.name.lower() == role and int(index) < each.replicas for each in evidence.roles)


def _of_pod(evidence: Evidence, pod: PodDetails, now: datetime) -> Iterator[Cause]:
    target = None if pod.is_over else pod.taken_away
    if _is_held(pod, now):
        yield _held(evidence, pod)
        return
    if target is not None:
        quote = Quote("condition", cut(target.message or target.reason), target.last_transition_time)
        end = End(task=pod.task, reason=target.reason)
        yield killed.disrupted(evidence, end, target.reason, quote)
    if pod.metadata.deletion_timestamp is not None:
        yield _ending(pod, now)
    elif event := unseen(evidence, pod):
        yield _unseen(pod, event, now)


# --- pods that are deleted


def _ending(pod: PodDetails, now: datetime, job: str = "") -> Cause:
    """`job`: the one that had the name before."""
    end = pod.metadata.deletion_timestamp or now
    grace = pod.metadata.deletion_grace_period_seconds or 0
    whose = f"of {job} that has the name of {TASKS}" if job else f"of {TASKS}"
    quote = Quote(
        "apiserver", f"pod {pod.name} has a deletionTimestamp, with a grace period of {grace} s", end
    )
    if now - end > OVERDUE:
        late, node = age((now - end).total_seconds()), pod.spec.node_name
        return Cause(
            kind="terminating",
            sentence=f"the pod {whose} was to end {late} ago, and its node {node} has not said that it has",
            fix=f"kubectl describe node {node}",
            tasks=(pod.task,),
            evidence=(quote,),
        )
    began, left = end - timedelta(seconds=grace), max(0.0, (end - now).total_seconds())
    since = age((now - began).total_seconds())
    return Cause(
        kind="terminating",
        sentence=f"the pod {whose} was deleted {since} ago and still ends: it has {age(left)} left for that",
        fix=LESS_TIME,
        tasks=(pod.task,),
        evidence=(quote,),
        is_symptom=True,
    )


def _is_held(pod: PodDetails, now: datetime) -> bool:
    """Whether only a finalizer holds a deleted pod: its time of deletion, the end of its grace period, is over."""
    deleted = pod.metadata.deletion_timestamp
    return bool(pod.metadata.finalizers) and deleted is not None and now >= deleted


def _held(evidence: Evidence, pod: PodDetails) -> Cause:
    holder = pod.metadata.finalizers[0]
    quote = Quote(
        "apiserver",
        f"metadata.finalizers: {', '.join(pod.metadata.finalizers)}",
        pod.metadata.deletion_timestamp,
    )
    return Cause(
        kind="deletion",
        sentence=f"the pod of {TASKS} is deleted, and its finalizer {holder} holds its name: no other can start",
        fix=without_finalizers(evidence.namespace, f"pod {pod.name}"),
        tasks=(pod.task,),
        evidence=(quote,),
    )


# --- nodes that do not answer


def unseen(evidence: Evidence, pod: PodDetails) -> EventView | None:
    """The warning that the node of a pod does not answer, if it still does not: whether the pod runs is then
    unknown. Once the node answers, its kubelet sets the pod's condition again."""
    ready = pod.condition("Ready")
    if pod.is_over or ready is None or ready.status != "False":
        return None
    since = ready.last_transition_time
    told = (
        each
        for each in evidence.warnings(pod, UNSEEN)
        if each.at and (not since or each.at >= since - MOMENT)
    )
    return next(told, None)


def _unseen(pod: PodDetails, event: EventView, now: datetime) -> Cause:
    node, since = pod.spec.node_name, age((now - (event.at or now)).total_seconds())
    away = "Kubernetes takes the pod away after five minutes, and that costs no retry"
    return Cause(
        kind="node-lost",
        sentence=f"the node {node} of {TASKS} has not answered for {since}: whether it still runs is unknown",
        fix=f"kubectl describe node {node}; unless its template says otherwise, {away}",
        tasks=(pod.task,),
        evidence=(Quote("event", cut(event.message), event.at),),
    )
