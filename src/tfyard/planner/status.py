"""The status of a job: upstream's conditions and counts, plus what has to be remembered."""

from datetime import datetime

import msgspec

from tfyard.model import Cluster, Condition, Failure, Job, Obstacle, RoleMemory, RoleStatus, Status
from tfyard.model.names import selector

from . import conditions, reasons, restart, waiting
from .census import Census, RoleCensus
from .restart import Verdict
from .situation import Situation
from .success import is_running


def begin(job: Job, before: Status, cluster: Cluster, now: datetime) -> Status:
    """Created is set whenever it is missing, not when the creation is seen: so it is never lost."""
    found = before.conditions
    if before.condition(reasons.CREATED) is None:
        text = reasons.CREATED_MESSAGE.format(job=job)
        found = (*conditions.put((), reasons.CREATED, reasons.TFJOB_CREATED, text, now), *found)
    return msgspec.structs.replace(
        before, conditions=found, cluster=cluster, observed_generation=job.generation or None
    )


def complete(job: Job, before: Status, now: datetime) -> Status:
    """A finished job as we would have left it: upstream sometimes sets no completion time, and without one
    the TTL would never expire. Tools wait for the generation, even for an edit to the TTL alone."""
    ends = [c for c in before.conditions if c.type in (reasons.SUCCEEDED, reasons.FAILED)]
    when = before.completion_time or ends[-1].last_transition_time or now
    phase = conditions.phase(before.conditions)
    generation = job.generation or None
    return msgspec.structs.replace(before, completion_time=when, phase=phase, observed_generation=generation)


def count(job: Job, status: Status, census: Census) -> Status:
    roles = {role.role.name: _role_status(job, role) for role in census}
    return msgspec.structs.replace(
        status,
        replica_statuses=roles,
        restarts=sum(role.restarts for role in roles.values()),
        tasks={role.role.name: memory for role in census if (memory := role.memory()) != RoleMemory()},
        phase=conditions.phase(status.conditions),
    )


def progress(situation: Situation, status: Status, verdict: Verdict, waits: waiting.Review) -> Status:
    """The conditions of a job that has not ended."""
    job, found, now = situation.job, status.conditions, situation.stamp
    is_recovering = status.has(reasons.RESTARTING) and _is_incomplete(situation.census)
    if verdict.restarted or verdict.replaced:
        text = restart.explain(job, verdict)
        found = conditions.put(found, reasons.RESTARTING, reasons.TFJOB_RESTARTING, text, now)
    elif is_running(situation, waits.crashing):
        found = found if is_recovering else _run(job, found, now)
    elif waits.crashing and status.has(reasons.RUNNING):
        text = reasons.CRASHING_MESSAGE.format(job=job)
        found = conditions.put(found, reasons.RUNNING, reasons.CRASH_LOOP, text, now, holds=False)
    return msgspec.structs.replace(status, conditions=found)


def succeed(job: Job, status: Status, now: datetime) -> Status:
    """A job that succeeded has run, even if it was too short for anybody to see it Running."""
    has_run = status.condition(reasons.RUNNING) or status.condition(reasons.RESTARTING)
    found = status.conditions if has_run else _run(job, status.conditions, now)
    text = reasons.SUCCEEDED_MESSAGE.format(job=job)
    found = conditions.put(found, reasons.SUCCEEDED, reasons.TFJOB_SUCCEEDED, text, now)
    return msgspec.structs.replace(status, conditions=found, completion_time=now)


def fail(status: Status, failure: Failure, now: datetime) -> Status:
    found = conditions.put(status.conditions, reasons.FAILED, reasons.TFJOB_FAILED, failure.message, now)
    return msgspec.structs.replace(status, conditions=found, completion_time=now, failure=failure)


def note_obstacles(status: Status, obstacles: list[Obstacle], now: datetime) -> Status:
    """Report what blocks the job, and when nothing does any more; a job that was never blocked says nothing."""
    found = status.conditions
    if obstacles:
        first = obstacles[0]
        found = conditions.put(found, reasons.BLOCKED, first.reason, first.message, now)
    elif status.has(reasons.BLOCKED):
        text = reasons.UNBLOCKED_MESSAGE
        found = conditions.put(found, reasons.BLOCKED, reasons.UNBLOCKED, text, now, holds=False)
    return msgspec.structs.replace(status, conditions=found)


def note_wait(status: Status, waits: waiting.Review, now: datetime) -> Status:
    """Report what pods wait for; a wait that is over keeps its reason and message."""
    found, before = status.conditions, status.condition(reasons.WAITING)
    if waits.reason:
        found = conditions.put(found, reasons.WAITING, waits.reason, waits.message, now)
    elif before is not None and before.status == "True":
        found = conditions.put(found, reasons.WAITING, before.reason, before.message, now, holds=False)
    return msgspec.structs.replace(status, conditions=found)


def count_active_as_succeeded(status: Status) -> Status:
    """As upstream does with tasks that still run when the job succeeds (parameter servers, mostly)."""
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


def _is_incomplete(census: Census) -> bool:
    """Restarting lasts until all tasks are back, not until the next pass."""
    return any(role.absent or role.pending or role.stale or role.leaving for role in census)
