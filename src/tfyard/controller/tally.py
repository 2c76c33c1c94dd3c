"""What a decision adds to the counters. Derived from the status, so that an operator that starts anew does not
count old jobs again, as upstream does."""

from collections.abc import Iterable

from tfyard.model import Action, Create, Decision, Delete, DeleteJob, Job, Status
from tfyard.model.names import POD_GROUP

from .counted import Metrics


def tally(metrics: Metrics, job: Job, before: Status, decision: Decision) -> None:
    after, space = decision.status, job.namespace
    if after.conditions and not before.conditions:
        metrics.jobs_created.count(space)
    if after.has("Succeeded") and not before.has("Succeeded"):
        metrics.jobs_successful.count(space)
    if after.has("Failed") and not before.has("Failed"):
        metrics.jobs_failed.count(space)
        metrics.pods_failed.inc(by=max(1, _failed(after) - _failed(before)))
    if _restarts(after) > _restarts(before):
        metrics.jobs_restarted.count(space)


def tally_deeds(metrics: Metrics, job: Job, done: Iterable[Action]) -> None:
    """Of what was decided, that which was really done."""
    for action in done:
        if isinstance(action, DeleteJob):
            metrics.jobs_deleted.count(job.namespace)
        elif isinstance(action, Create | Delete):
            _count_child(metrics, action)


def _count_child(metrics: Metrics, action: Create | Delete) -> None:
    if action.kind == "Pod":
        (metrics.pods_created if isinstance(action, Create) else metrics.pods_deleted).inc()
    elif action.kind == POD_GROUP:
        (metrics.groups_created if isinstance(action, Create) else metrics.groups_deleted).inc()
    elif action.kind == "Service" and isinstance(action, Create):
        metrics.services_created.inc()


def _restarts(status: Status) -> int:
    return sum(role.restarts for role in status.replica_statuses.values())


def _failed(status: Status) -> int:
    return sum(role.failed for role in status.replica_statuses.values())
