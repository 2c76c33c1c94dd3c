"""A job whose spec cannot be read. If it never could, it fails. If it runs already, its pods stay as they are and
it is blocked until the next edit: meanwhile no pod is created, replaced or judged, but what can be read of its run
policy holds."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from tfyard.model import ROLES, Cluster, Failure, Job, Observed, Obstacle, Role, Status

from . import reasons, status
from .census import GivenUp
from .situation import Situation

MOST_TASKS = 100_000
"""Of a role. Labels and statuses are data that others may write, and a census costs time for each task."""


def was_never_readable(observed: Observed) -> bool:
    """Nobody has started it: neither this operator nor another one before it."""
    return not (observed.status.conditions or observed.pods or observed.children)


def refuse(job: Job, before: Status, now: datetime) -> Status:
    """It fails, for all the reasons at once."""
    after = status.begin(job, before, before.cluster or Cluster(), now)
    after = status.fail(after, Failure(cause="InvalidSpec", message=_explain(job)), now)
    return replace(after, phase=reasons.FAILED)


def obstacles(job: Job) -> list[Obstacle]:
    return [Obstacle(reasons.INVALID_SPEC, _explain(job))] if job.problems else []


def with_known_roles(job: Job, observed: Observed) -> Job:
    """With the roles that its status and its pods show: those of the spec may be what is wrong, and what is
    remembered of a task must not be dropped because of that."""
    sizes: dict[str, int] = defaultdict(int)
    for name, shown in observed.status.replica_statuses.items():
        _, _, size = shown.ready.partition("/")
        sizes[name] = int(size) if size.isdecimal() else 0
    for pod in observed.pods:
        sizes[pod.task.role] = max(sizes[pod.task.role], pod.task.index + 1)
    roles = (Role(name=name, replicas=min(sizes[name], MOST_TASKS)) for name in ROLES if name in sizes)
    return replace(job, roles=tuple(roles))


def pods_leaving(situation: Situation) -> Iterator[GivenUp]:
    """Somebody deletes them: however they end, their tasks have not finished."""
    return (GivenUp(pod) for role in situation.census for pod in role.leaving)


def _explain(job: Job) -> str:
    return reasons.listed(reasons.INVALID_MESSAGE.format(job=job), job.problems)
