"""After the end: cleanPodPolicy, the evaluator's grace, and the time to live."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from tfyard.model import EVALUATOR, Action, CleanPolicy, Delete, DeleteJob, Job, Observed, Pod, Status

from . import children, gang, kueue, plan


def policy(job: Job, status: Status) -> CleanPolicy:
    """A deadline that lets its pods run on would be none: then at least the running ones go."""
    chosen = job.run_policy.clean
    missed_deadline = status.failure is not None and status.failure.cause == "DeadlineExceeded"
    return "Running" if chosen == "None" and missed_deadline else chosen


def clean_up(job: Job, observed: Observed, status: Status, now: datetime) -> Iterator[Action]:
    left = ttl_remaining(job, status, now)
    if left is not None and left <= 0:
        yield DeleteJob()
        return
    yield from gang.dissolve(job, observed)
    chosen = policy(job, status)
    yield from kueue.let_go([pod for pod in observed.pods if not must_go(pod, chosen)], status)
    if chosen == "None":
        return
    waiting = grace_remaining(job, observed, status, now) > 0
    doomed = [pod for pod in observed.pods if must_go(pod, chosen)]
    yield from plan.departures((p for p in doomed if not (waiting and p.task.role == EVALUATOR)), now)
    if not waiting:
        yield from (Delete(kind, name) for kind, name in children.temporary(job, observed.children))


def must_go(pod: Pod, chosen: CleanPolicy) -> bool:
    return chosen == "All" or (chosen == "Running" and is_active(pod))


def is_active(pod: Pod) -> bool:
    return pod.phase not in ("Succeeded", "Failed")


def ttl_remaining(job: Job, status: Status, now: datetime) -> float | None:
    if job.run_policy.ttl is None or status.completion_time is None:
        return None
    return (status.completion_time + timedelta(seconds=job.run_policy.ttl) - now).total_seconds()


def grace_remaining(job: Job, observed: Observed, status: Status, now: datetime) -> float:
    """Seconds that evaluators may still take: none once they have ended, or if the job failed."""
    evaluating = any(pod.task.role == EVALUATOR and is_active(pod) for pod in observed.pods)
    if not evaluating or not status.has("Succeeded") or status.completion_time is None:
        return 0.0
    until = status.completion_time + timedelta(seconds=job.run_policy.evaluator_grace)
    return max(0.0, (until - now).total_seconds())
