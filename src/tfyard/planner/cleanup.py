"""After the end: cleanPodPolicy, the evaluator's grace period, and the TTL."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from tfyard.model import EVALUATOR, Action, CleanPolicy, Delete, DeleteJob, Job, Observed, Pod, Status

from . import children, gang, kueue, plan
from .pod_state import is_active


def policy(job: Job, status: Status) -> CleanPolicy:
    """A deadline that lets pods run on would have no effect: then at least the running ones are deleted."""
    chosen = job.run_policy.clean
    missed_deadline = status.failure is not None and status.failure.cause == "DeadlineExceeded"
    return "Running" if chosen == "None" and missed_deadline else chosen


def clean_up(job: Job, observed: Observed, status: Status, now: datetime) -> Iterator[Action]:
    left = ttl_remaining(job, status, now)
    if left is not None and left <= 0:
        yield DeleteJob()
        return
    yield from gang.delete_group(job, observed)
    chosen = policy(job, status)
    gone = [pod for pod in observed.pods if _deletes(chosen, pod)]
    yield from kueue.release_quota([pod for pod in observed.pods if not _deletes(chosen, pod)], status)
    if chosen == "None":
        return
    waiting = grace_remaining(job, observed, status, now) > 0
    yield from plan.delete_pods((p for p in gone if not (waiting and p.task.role == EVALUATOR)), now)
    if not waiting:
        yield from (Delete(kind, name) for kind, name in children.temporary(job, observed.children))


def ttl_remaining(job: Job, status: Status, now: datetime) -> float | None:
    if job.run_policy.ttl is None or status.completion_time is None:
        return None
    return (status.completion_time + timedelta(seconds=job.run_policy.ttl) - now).total_seconds()


def grace_remaining(job: Job, observed: Observed, status: Status, now: datetime) -> float:
    """Seconds that evaluators may still run: none if they have ended or the job has failed."""
    evaluating = any(pod.task.role == EVALUATOR and is_active(pod) for pod in observed.pods)
    if not evaluating or not status.has("Succeeded") or status.completion_time is None:
        return 0.0
    until = status.completion_time + timedelta(seconds=job.run_policy.evaluator_grace)
    return max(0.0, (until - now).total_seconds())


def _deletes(chosen: CleanPolicy, pod: Pod) -> bool:
    return chosen == "All" or (chosen == "Running" and is_active(pod))
