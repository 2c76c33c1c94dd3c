"""Jobs whose spec cannot be read. If it never could, the job fails. If the job runs already, its pods stay as they
are and it is blocked until the next edit: meanwhile no pod is created, replaced or judged, but the readable parts
of its run policy hold."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from tfyard.model import ROLES, Cluster, Failure, Job, Observed, Obstacle, Role, Status

from . import reasons, status
from .census import GivenUp
from .situation import Situation

MOST_TASKS = 100_000
"""Maximum number of tasks of a role: users may write labels and statuses, and a census costs time per task."""


def was_never_readable(observed: Observed) -> bool:
    """Whether neither this operator nor another one before it has started the job."""
    return not (observed.status.conditions or observed.pods or observed.children)


def refuse(job: Job, before: Status, now: datetime) -> Status:
    """The status of a job that fails because of its spec; the message lists all problems."""
    after = status.begin(job, before, before.cluster or Cluster(), now)
    after = status.fail(after, Failure(cause="InvalidSpec", message=_explain(job)), now)
    return replace(after, phase=reasons.FAILED)


def obstacles(job: Job) -> list[Obstacle]:
    return [Obstacle(reasons.INVALID_SPEC, _explain(job))] if job.problems else []


def with_known_roles(job: Job, observed: Observed) -> Job:
    """The job with the roles that its status and its pods show: the roles in the spec may be wrong, and the status
    must not forget a task because of that."""
    sizes: dict[str, int] = defaultdict(int)
    for name, shown in observed.status.replica_statuses.items():
        sizes[name] = shown.size
    for pod in observed.pods:
        sizes[pod.task.role] = max(sizes[pod.task.role], pod.task.index + 1)
    roles = (Role(name=name, replicas=min(sizes[name], MOST_TASKS)) for name in ROLES if name in sizes)
    return replace(job, roles=tuple(roles))


def pods_leaving(situation: Situation) -> Iterator[GivenUp]:
    """Pods that are being deleted: however they end, their tasks have not finished."""
    return (GivenUp(pod) for role in situation.census for pod in role.leaving)


def _explain(job: Job) -> str:
    return reasons.listed(reasons.INVALID_MESSAGE.format(job=job), job.problems)
