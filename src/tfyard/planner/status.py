"""The status of a job: upstream's conditions and counts, plus what has to be remembered."""

from datetime import datetime

import msgspec

from tfyard.model import Cluster, Condition, Failure, Job, Obstacle, RoleMemory, RoleStatus, Status
from tfyard.model.names import selector

from . import conditions, reasons, restart
from .census import Census, RoleCensus
from .restart import Verdict
from .success import is_running


def begin(job: Job, before: Status, cluster: Cluster, now: datetime) -> Status:
    """Created is derived, not witnessed: whoever misses it sets it, so it is never lost."""
    found = before.conditions
    if before.condition(reasons.CREATED) is None:
        text = reasons.CREATED_MESSAGE.format(job=job)
        found = (*conditions.put((), reasons.CREATED, reasons.TFJOB_CREATED, text, now), *found)
    return msgspec.structs.replace(acknowledge(job, before), conditions=found, cluster=cluster)


def acknowledge(job: Job, before: Status) -> Status:
    """Tools wait until an edit was seen, be it only to the time to live of a finished job."""
    return msgspec.structs.replace(before, observed_generation=job.generation or None)


def inherit(job: Job, before: Status, now: datetime) -> Status:
    """A finished job as we would have left it: upstream sometimes sets no completion time, and without one
    the time to live would never pass."""
    ends = [c for c in before.conditions if c.type in (reasons.SUCCEEDED, reasons.FAILED)]
    when = before.completion_time or ends[-1].last_transition_time or now
    phase = conditions.phase(before.conditions)
    return msgspec.structs.replace(acknowledge(job, before), completion_time=when, phase=phase)


def count(job: Job, status: Status, census: Census) -> Status:
    return msgspec.structs.replace(
        status,
        replica_statuses={role.role.name: _role_status(job, role) for role in census},
        restarts=census.restarts,
        tasks={role.role.name: memory for role in census if (memory := role.memory()) != RoleMemory()},
        phase=conditions.phase(status.conditions),
    )


def progress(job: Job, status: Status, census: Census, verdict: Verdict, now: datetime) -> Status:
    """The conditions of a job that goes on."""
    found = status.conditions
    if verdict.restarted or verdict.replaced:
        text = restart.explain(job, verdict)
        found = conditions.put(found, reasons.RESTARTING, reasons.TFJOB_RESTARTING, text, now)
    elif is_running(job, census) and not (status.has(reasons.RESTARTING) and _is_recovering(census)):
        found = _run(job, found, now)
    return msgspec.structs.replace(status, conditions=found)


def succeed(job: Job, status: Status, now: datetime) -> Status:
    """Who has succeeded has run, be it too shortly for anybody to have told."""
    has_run = status.condition(reasons.RUNNING) or status.condition(reasons.RESTARTING)
    found = status.conditions if has_run else _run(job, status.conditions, now)
    text = reasons.SUCCEEDED_MESSAGE.format(job=job)
    found = conditions.put(found, reasons.SUCCEEDED, reasons.TFJOB_SUCCEEDED, text, now)
    return msgspec.structs.replace(status, conditions=found, completion_time=now)


def fail(status: Status, failure: Failure, now: datetime) -> Status:
    found = conditions.put(status.conditions, reasons.FAILED, reasons.TFJOB_FAILED, failure.message, now)
    return msgspec.structs.replace(status, conditions=found, completion_time=now, failure=failure)


def note_obstacles(status: Status, obstacles: tuple[Obstacle, ...], now: datetime) -> Status:
    """Say what stands in the way, and that it no longer does; silent on jobs that were never blocked."""
    found = status.conditions
    if obstacles:
        first = obstacles[0]
        found = conditions.put(found, reasons.BLOCKED, first.reason, first.message, now)
    elif status.has(reasons.BLOCKED):
        text = reasons.UNBLOCKED_MESSAGE
        found = conditions.put(found, reasons.BLOCKED, reasons.UNBLOCKED, text, now, holds=False)
    return msgspec.structs.replace(status, conditions=found)


def credit_active(status: Status) -> Status:
    """Upstream counts who still runs when the job succeeds (parameter servers, mostly) as succeeded."""
    roles = {
        name: msgspec.structs.replace(role, succeeded=role.succeeded + role.active, active=0)
        for name, role in status.replica_statuses.items()
    }
    return msgspec.structs.replace(status, replica_statuses=roles)


def _run(job: Job, found: tuple[Condition, ...], now: datetime) -> tuple[Condition, ...]:
    text = reasons.RUNNING_MESSAGE.format(job=job)
    return conditions.put(found, reasons.RUNNING, reasons.TFJOB_RUNNING, text, now)


def _role_status(job: Job, role: RoleCensus) -> RoleStatus:
    done = len(role.finished)
    ready = done + sum(pod.ready for pod in role.running)
    return RoleStatus(
        active=len(role.running),
        succeeded=done,
        failed=len(role.failed),
        restarts=role.restarts,
        ready=f"{ready}/{role.role.replicas}",
        selector=selector(job, role.role.name),
    )


def _is_recovering(census: Census) -> bool:
    """Restarting lasts until everybody is back, not until the next look."""
    return any(role.absent or role.pending or role.stale or role.leaving for role in census)
