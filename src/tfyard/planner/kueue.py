"""Kueue with groups of pods, where it does not manage TFJobs themselves. A pod gets all three marks or none: with
a queue alone, Kueue would admit each pod by itself, and a job could hold half of what it needs for ever.
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
    """How many more pods may be created; None: any number. Kueue deletes those beyond its count, and we would
    create them again, for ever."""
    if not setup.queued:
        return None
    return max(0, setup.queued - sum(pod.deleting is None for pod in observed.pods))


def obstacle(situation: Situation) -> Obstacle | None:
    """The job was scaled up after Kueue was told its size."""
    allowed = pods_allowed(situation.observed, situation.setup)
    if allowed is None or sum(len(role.absent) for role in situation.census) <= allowed:
        return None
    text = reasons.QUEUE_TOO_SMALL_MESSAGE.format(job=situation.job, count=situation.setup.queued)
    return Obstacle(reasons.QUEUE_TOO_SMALL, text)


def release_quota(staying: list[Pod], status: Status) -> Iterator[Amend]:
    """A group that failed waits for a retry and keeps its quota until one of its pods says that there is none.
    A group that succeeded as a whole needs no such mark."""
    is_queued = status.cluster is not None and status.cluster.queued > 0
    is_over = any(pod.final for pod in staying) or all(pod.phase == "Succeeded" for pod in staying)
    if is_queued and not is_over:
        yield Amend("Pod", staying[0].name, {"metadata": {"annotations": {QUEUE_RETRIES: "false"}}})
