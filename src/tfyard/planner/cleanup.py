"""Cleaning up after a job has ended: cleanPodPolicy, the evaluator's grace period, and the TTL."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model import EVALUATOR, Action, CleanPolicy, Delete, DeleteJob, Job, Observed, Pod, Status

from . import children, gang, kueue, plan, sidecars
from .pod_state import goes_on, is_active
from .reasons import STALLED
from .site import Site


def policy(job: Job, status: Status) -> CleanPolicy:
    """The cleanPodPolicy in effect. After a missed deadline running pods are always deleted: otherwise the
    deadline would have no effect. So are those that stalled once too often: they would never end."""
    chosen = job.run_policy.clean
    missed_deadline = status.failure is not None and status.failure.cause == "DeadlineExceeded"
    return "Running" if chosen == "None" and (missed_deadline or _has_stalled(status)) else chosen


def clean_up(job: Job, observed: Observed, site: Site, status: Status, now: datetime) -> Iterator[Action]:
    """Delete pods by the policy, evaluators after their grace period, then what only pods need, such as Services.
    Containers that still run in pods that stay are ended in place. After the TTL, delete the job itself."""
    left = ttl_remaining(job, status, now)
    if left is not None and left <= 0:
        yield DeleteJob()
        return
    yield from gang.delete_group(job, observed)
    chosen, waiting = policy(job, status), grace_remaining(job, observed, status, now) > 0
    gone = [pod for pod in observed.pods if _deletes(chosen, pod, site)]
    stay = [pod for pod in observed.pods if not _deletes(chosen, pod, site)]
    yield from kueue.release_quota(stay, status)
    yield from sidecars.end(sidecars.lingering(stay), now)
    if not site.kubeflow and (chosen == "Running" or status.has("Failed")):
        yield from sidecars.end_restarts(pod for pod in stay if not _may_go_on(pod, waiting=waiting))
    if chosen == "None":
        return
    gone = [pod for pod in gone if not _may_go_on(pod, waiting=waiting)]
    yield from plan.delete_pods((pod for pod in gone if not sidecars.may_go_on(pod, now)), now)
    if not waiting:
        kept = _services_of(job, stay) if site.kubeflow else set()
        yield from (Delete(*key) for key in children.temporary(job, observed.children) if key not in kept)


def going_on(job: Job, observed: Observed, site: Site, status: Status, now: datetime) -> list[Pod]:
    """Pods whose programs go on after the end of the job: by the policy, or as evaluators in their grace."""
    chosen, waiting = policy(job, status), grace_remaining(job, observed, status, now) > 0
    running = [pod for pod in observed.pods if goes_on(pod) and pod.deleting is None]
    return [pod for pod in running if _may_go_on(pod, waiting=waiting) or not _deletes(chosen, pod, site)]


def ttl_remaining(job: Job, status: Status, now: datetime) -> float | None:
    if job.run_policy.ttl is None or status.completion_time is None:
        return None
    return job.run_policy.ttl - (now - status.completion_time).total_seconds()


def grace_remaining(job: Job, observed: Observed, status: Status, now: datetime) -> float:
    """Seconds that evaluators may still run; 0 if they have ended or the job has failed."""
    evaluating = any(pod.task.role == EVALUATOR and is_active(pod) and not pod.end for pod in observed.pods)
    if not evaluating or not status.has("Succeeded") or status.completion_time is None:
        return 0.0
    return max(0.0, job.run_policy.evaluator_grace - (now - status.completion_time).total_seconds())


def _has_stalled(status: Status) -> bool:
    """Whether the job has failed because a task stalled."""
    failure, endings = status.failure, status.endings
    if failure is None or failure.cause != "BackoffLimitExceeded" or not endings:
        return False
    return (endings[-1].task, endings[-1].reason) == (failure.task, STALLED)


def _services_of(job: Job, stay: list[Pod]) -> set[children.Key]:
    """Services of pods that stay, by a name of their own or shared; upstream keeps them too."""
    return {("Service", name) for pod in stay for name in (pod.name, job.name)}


def _may_go_on(pod: Pod, *, waiting: bool) -> bool:
    """Whether the pod is an evaluator in its grace period; `waiting`: that period is not over."""
    return waiting and pod.task.role == EVALUATOR


def _deletes(chosen: CleanPolicy, pod: Pod, site: Site) -> bool:
    """Whether the policy deletes the pod. Upstream also deletes pods that only sidecars or a next restart keep in
    the phase Running."""
    if chosen != "Running" or not is_active(pod):
        return chosen == "All"
    is_kept_up = site.kubeflow and bool(pod.restart_due or pod.lingers_since)
    return goes_on(pod) or is_kept_up or pod.deleting is not None
