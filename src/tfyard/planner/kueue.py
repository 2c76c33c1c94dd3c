"""Kueue by groups of pods, where it does not see to TFJobs themselves. A pod gets all three marks or none: with a
queue alone, Kueue would let in each pod for itself, and a job could hold half of what it needs for ever.
"""

from collections.abc import Iterator

from tfyard.model import Amend, Job, Observed, Obstacle, Pod, Status
from tfyard.model.names import QUEUE_COUNT, QUEUE_GROUP, QUEUE_NAME, QUEUE_RETRIES

from . import reasons
from .gang import Membership
from .site import Site


def membership(job: Job, site: Site) -> Membership:
    queue = job.labels.get(QUEUE_NAME)
    if not site.queued or not queue:
        return Membership()
    labels = {QUEUE_NAME: queue, QUEUE_GROUP: job.name}
    return Membership(labels=labels, annotations={QUEUE_COUNT: str(site.queued)})


def room(observed: Observed, site: Site) -> int | None:
    """How many pods may still be made; None: any number. Kueue deletes those beyond its count, and we would
    make them again, for ever."""
    staying = sum(pod.deleting is None for pod in observed.pods)
    return max(0, site.queued - staying) if site.queued else None


def too_small(job: Job, observed: Observed, missing: int, site: Site) -> Obstacle | None:
    left = room(observed, site)
    if left is None or missing <= left:
        return None
    return Obstacle(
        reasons.QUEUE_TOO_SMALL, reasons.QUEUE_TOO_SMALL_MESSAGE.format(job=job, count=site.queued)
    )


def let_go(staying: list[Pod], status: Status) -> Iterator[Amend]:
    """A group that failed waits for its next try, and holds its share until somebody says that there is none. One
    pod says it for all; a group that succeeded as a whole needs no word."""
    is_queued = status.cluster is not None and status.cluster.queued > 0
    is_over = any(pod.final for pod in staying) or all(pod.phase == "Succeeded" for pod in staying)
    if is_queued and not is_over:
        yield Amend("Pod", staying[0].name, {"metadata": {"annotations": {QUEUE_RETRIES: "false"}}})
