"""Suspending a job: pods and Services are deleted; finished tasks stay finished by what the status remembers.
A job may keep its pods, with their logs: then they are ended in place, and deleted by the resume."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model import Action, Amend, Delete, Job, Observed, Pod, Status
from tfyard.model.names import STOPPED

from . import children, conditions, gang, plan, reasons, sidecars
from .census import GivenUp
from .pod_state import is_active
from .restart import is_tolerated
from .situation import Situation


def suspended(job: Job, status: Status, now: datetime) -> conditions.Conditions:
    listed, text = status.conditions, reasons.SUSPENDED_MESSAGE.format(job=job)
    for type in (reasons.RUNNING, reasons.RESTARTING):
        if status.has(type):
            listed = conditions.put(listed, type, reasons.TFJOB_SUSPENDED, text, now, holds=False)
    return conditions.put(listed, reasons.SUSPENDED, reasons.TFJOB_SUSPENDED, text, now)


def resumed(job: Job, status: Status, now: datetime) -> conditions.Conditions:
    if not status.has(reasons.SUSPENDED):
        return status.conditions
    text = reasons.RESUMED_MESSAGE.format(job=job)
    return conditions.put(status.conditions, reasons.SUSPENDED, reasons.TFJOB_RESUMED, text, now, holds=False)


def pods_to_remember(situation: Situation) -> Iterator[GivenUp]:
    """Pods that must count after the resume: those with restarts in place or a failure that is not counted yet.
    The other pods are only deleted: giving them up would be an entry in the status for every task."""
    for role in situation.census:
        for pod in role.failed:
            yield GivenUp(pod, counts=not pod.disrupted and not is_tolerated(situation.job, pod))
        here = (*role.running, *role.pending, *role.leaving, *role.unknown)
        yield from (GivenUp(pod) for pod in here if pod.restarts)


def pods_still_leaving(situation: Situation) -> Iterator[GivenUp]:
    """Pods that the suspension deleted or ended and that still exist at the resume: however they end, their tasks
    have not finished, and they were not taken away by the cluster."""
    if situation.is_resumed:
        yield from (GivenUp(pod) for role in situation.census for pod in role.leaving)


def stop_all(job: Job, observed: Observed, now: datetime) -> Iterator[Action]:
    kept = [pod for pod in observed.pods if job.run_policy.keeps_pods and _has_logs(pod)]
    uids = {pod.uid for pod in kept}
    yield from (_end(pod) for pod in kept if is_active(pod) and not pod.told_to_end)
    yield from plan.delete_pods((pod for pod in observed.pods if pod.uid not in uids), now)
    yield from gang.delete_group(job, observed)
    yield from (Delete(kind, name) for kind, name in children.temporary(job, observed.children))


def _has_logs(pod: Pod) -> bool:
    return pod.deleting is None and pod.phase != "Pending"


def _end(pod: Pod) -> Amend:
    """A pod whose program has ended by itself says so afterwards, too."""
    return sidecars.end_in_place(pod, reasons.STOPPED_PODS, {} if pod.end else {STOPPED: "true"})
