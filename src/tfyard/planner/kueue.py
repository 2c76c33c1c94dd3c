"""Kueue with groups of pods, where it does not manage TFJobs themselves. A pod gets all three marks or none: with
only a queue, Kueue would admit each pod by itself, and a job could hold half of what it needs for ever.
"""

from collections.abc import Iterator

from tfyard.model import Amend, Job, Observed, Obstacle, Pod, Status
from tfyard.model.names import QUEUE_COUNT, QUEUE_GROUP, QUEUE_NAME, QUEUE_RETRIES

from . import reasons
from .gang import Membership
from .job_setup import Setup
from .situation import Situation


def membership(job: Job, setup: Setup) -> Membership:
    queue = job.labels.get(QUEUE_NAME)
    if not setup.queued or not queue:
        return Membership()
    labels = {QUEUE_NAME: queue, QUEUE_GROUP: job.name}
    return Membership(labels=labels, annotations={QUEUE_COUNT: str(setup.queued)})


def pods_allowed(observed: Observed, setup: Setup) -> int | None:
    """Number of pods that may still be created; None: any number. Kueue deletes those beyond its count, and the
    operator would create them again, for ever."""
    if not setup.queued:
        return None
    return max(0, setup.queued - sum(pod.deleting is None for pod in observed.pods))


def obstacle(situation: Situation) -> Obstacle | None:
    """The obstacle of a job that was scaled up after Kueue queued it with fewer pods."""
    allowed = pods_allowed(situation.observed, situation.setup)
    if allowed is None or sum(len(role.absent) for role in situation.census) <= allowed:
        return None
    text = reasons.QUEUE_TOO_SMALL_MESSAGE.format(job=situation.job, count=situation.setup.queued)
    return Obstacle(reasons.QUEUE_TOO_SMALL, text)


def release_quota(staying: list[Pod], status: Status) -> Iterator[Amend]:
    """Mark a failed group as final: otherwise Kueue waits for a retry and keeps the group's quota. A group that
    succeeded as a whole needs no such mark."""
    is_queued = status.cluster is not None and status.cluster.queued > 0
    is_over = any(pod.final for pod in staying) or all(map(_will_succeed, staying))
    if is_queued and not is_over:
        yield Amend("Pod", staying[0].name, {"metadata": {"annotations": {QUEUE_RETRIES: "false"}}})


def _will_succeed(pod: Pod) -> bool:
    """Whether Kueue will see the phase Succeeded: a pod that is ended in place is Failed."""
    is_ended = pod.phase == "Failed" or pod.lingers_since or pod.told_to_end
    return pod.end == "Succeeded" and not is_ended
