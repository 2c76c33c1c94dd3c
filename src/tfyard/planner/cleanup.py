"""After the end: cleanPodPolicy, the evaluator's grace period, and the TTL."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from tfyard.model import EVALUATOR, Action, CleanPolicy, Delete, DeleteJob, Job, Observed, Pod, Status

from . import children, gang, kueue, plan, sidecars
from .pod_state import is_active
from .site import Site


def policy(job: Job, status: Status) -> CleanPolicy:
    """A deadline that lets pods run on would have no effect: then at least the running ones are deleted."""
    chosen = job.run_policy.clean
    missed_deadline = status.failure is not None and status.failure.cause == "DeadlineExceeded"
    return "Running" if chosen == "None" and missed_deadline else chosen


def clean_up(job: Job, observed: Observed, site: Site, status: Status, now: datetime) -> Iterator[Action]:
    """Pods by the policy, but evaluators not before their grace period is over; then what only pods need, such as
    Services. After the TTL, the job itself."""
    left = ttl_remaining(job, status, now)
    if left is not None and left <= 0:
        yield DeleteJob()
        return
    yield from gang.delete_group(job, observed)
    chosen = policy(job, status)
    gone = [pod for pod in observed.pods if _deletes(chosen, pod)]
    stay = [pod for pod in observed.pods if not _deletes(chosen, pod)]
    yield from kueue.release_quota(stay, status)
    if chosen == "None":
        yield from sidecars.end(sidecars.lingering(observed.pods), now)
        return
    waiting = grace_remaining(job, observed, status, now) > 0
    gone = [pod for pod in gone if not (waiting and pod.task.role == EVALUATOR)]
    yield from plan.delete_pods((pod for pod in gone if not sidecars.may_go_on(pod, now)), now)
    if not waiting:
        kept = _services_of(job, stay) if site.kubeflow else set()
        yield from (Delete(*key) for key in children.temporary(job, observed.children) if key not in kept)


def ttl_remaining(job: Job, status: Status, now: datetime) -> float | None:
    if job.run_policy.ttl is None or status.completion_time is None:
        return None
    return (status.completion_time + timedelta(seconds=job.run_policy.ttl) - now).total_seconds()


def grace_remaining(job: Job, observed: Observed, status: Status, now: datetime) -> float:
    """Seconds that evaluators may still run: none if they have ended or the job has failed."""
    evaluating = any(pod.task.role == EVALUATOR and is_active(pod) and not pod.end for pod in observed.pods)
    if not evaluating or not status.has("Succeeded") or status.completion_time is None:
        return 0.0
    until = status.completion_time + timedelta(seconds=job.run_policy.evaluator_grace)
    return max(0.0, (until - now).total_seconds())


def _services_of(job: Job, stay: list[Pod]) -> set[children.Key]:
    """The Services of pods that stay, stay too, as upstream's: their own, or the one of all pods."""
    return {("Service", name) for pod in stay for name in (pod.name, job.name)}


def _deletes(chosen: CleanPolicy, pod: Pod) -> bool:
    return chosen == "All" or (chosen == "Running" and is_active(pod))
