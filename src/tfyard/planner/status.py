"""The status of a job: upstream's conditions and counts, plus what has to be remembered."""

from datetime import datetime

import msgspec

from tfyard.model import Cluster, Condition, Failure, Job, Obstacle, RoleMemory, RoleStatus, Status, shortened
from tfyard.model.names import selector

from . import conditions, reasons, restart, waiting
from .census import Census, RoleCensus
from .restart import Verdict
from .situation import Situation, whole_seconds
from .stall import StallReview
from .success import is_running


def begin(job: Job, before: Status, cluster: Cluster, now: datetime) -> Status:
    """A status with the condition Created. It is set whenever it is missing, so that it is never lost."""
    listed = before.conditions
    if before.condition(reasons.CREATED) is None:
        text = reasons.CREATED_MESSAGE.format(job=job)
        listed = (*conditions.put((), reasons.CREATED, reasons.TFJOB_CREATED, text, now), *listed)
    return msgspec.structs.replace(
        before, conditions=listed, cluster=cluster, observed_generation=job.generation or None
    )


def complete(job: Job, before: Status, now: datetime) -> Status:
    """The status of a finished job with what another operator left out: upstream may set no completion time,
    and the TTL would never expire. Tools wait for observedGeneration even after an edit of the TTL."""
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


def progress(situation: Situation, status: Status, verdict: Verdict, waits: waiting.WaitingReview) -> Status:
    """The status of a job that has not ended, with its conditions Running and Restarting."""
    job, listed, now = situation.job, status.conditions, situation.stamp
    is_recovering = status.has(reasons.RESTARTING) and _is_incomplete(situation.census)
    if verdict.is_restart:
        text = restart.explain(job, verdict)
        listed = conditions.put(listed, reasons.RESTARTING, reasons.TFJOB_RESTARTING, text, now)
    elif is_running(situation, waits.crashing):
        listed = listed if is_recovering else _run(job, listed, now)
    elif waits.crashing and status.has(reasons.RUNNING):
        text = reasons.CRASHING_MESSAGE.format(job=job)
        listed = conditions.put(listed, reasons.RUNNING, reasons.CRASH_LOOP, text, now, holds=False)
    return msgspec.structs.replace(status, conditions=listed)


def succeed(situation: Situation, status: Status) -> Status:
    """The status of a job that succeeded. It has run, even if no status said so meanwhile."""
    job, now = situation.job, situation.stamp
    has_run = status.condition(reasons.RUNNING) or status.condition(reasons.RESTARTING)
    listed = status.conditions if has_run else _run(job, status.conditions, _first_run(situation))
    text = reasons.SUCCEEDED_MESSAGE.format(job=job)
    listed = conditions.put(listed, reasons.SUCCEEDED, reasons.TFJOB_SUCCEEDED, text, now)
    return msgspec.structs.replace(status, conditions=listed, completion_time=now)


def fail(status: Status, failure: Failure, now: datetime) -> Status:
    failure = msgspec.structs.replace(failure, message=shortened(failure.message))
    listed = conditions.put(status.conditions, reasons.FAILED, reasons.TFJOB_FAILED, failure.message, now)
    return msgspec.structs.replace(status, conditions=listed, completion_time=now, failure=failure)


def note_obstacles(status: Status, obstacles: list[Obstacle], now: datetime) -> Status:
    """Set the condition Blocked; a job that was never blocked has no such condition."""
    listed = status.conditions
    if obstacles:
        first = obstacles[0]
        listed = conditions.put(listed, reasons.BLOCKED, first.reason, first.message, now)
    elif status.has(reasons.BLOCKED):
        text = reasons.UNBLOCKED_MESSAGE
        listed = conditions.put(listed, reasons.BLOCKED, reasons.UNBLOCKED, text, now, holds=False)
    return msgspec.structs.replace(status, conditions=listed)


def note_wait(status: Status, waits: waiting.WaitingReview, now: datetime) -> Status:
    """Set the condition Waiting; a wait that is over keeps its reason and message."""
    listed, before = status.conditions, status.condition(reasons.WAITING)
    if waits.reason:
        listed = conditions.put(listed, reasons.WAITING, waits.reason, waits.message, now)
    elif before is not None and before.status == "True":
        listed = conditions.put(listed, reasons.WAITING, before.reason, before.message, now, holds=False)
    return msgspec.structs.replace(status, conditions=listed)


def note_stall(job: Job, status: Status, stall: StallReview, now: datetime) -> Status:
    """Set the condition Stalled. A job that has never stalled has no such condition, unless the operator cannot
    see whether it does. What no look has shown stays as it was."""
    condition = status.condition(reasons.STALLED)
    holds, reason, text = False, reasons.GOES_ON, reasons.STALL_ENDED_MESSAGE.format(job=job)
    if stall.state == "stalled":
        holds, reason, text = True, reasons.NO_OUTPUT, stall.message
    elif stall.state == "forbidden":
        reason, text = reasons.LOGS_FORBIDDEN, reasons.LOGS_FORBIDDEN_MESSAGE.format(job=job)
    elif stall.state == "unknown" or condition is None or not _is_over(condition, stall):
        return status
    listed = conditions.put(status.conditions, reasons.STALLED, reason, text, now, holds=holds)
    return msgspec.structs.replace(status, conditions=listed)


def note_stall_restart(status: Status, verdict: Verdict, now: datetime) -> Status:
    text, reason = verdict.all_again, reasons.STALL_RESTARTED
    listed = conditions.put(status.conditions, reasons.STALLED, reason, text, now, holds=False)
    return msgspec.structs.replace(status, conditions=listed)


def _is_over(known: Condition, found: StallReview) -> bool:
    """Whether the condition is no longer true: the job has stalled, or its log could not be read."""
    return known.status == "True" or (known.reason == reasons.LOGS_FORBIDDEN and not found.is_blind)


def count_active_as_succeeded(status: Status) -> Status:
    """Count running tasks of a job that succeeds (mostly parameter servers) as succeeded, as upstream does."""
    roles = {
        name: msgspec.structs.replace(role, succeeded=role.succeeded + role.active, active=0)
        for name, role in status.replica_statuses.items()
    }
    return msgspec.structs.replace(status, replica_statuses=roles)


def _first_run(situation: Situation) -> datetime:
    """When the first program started, as far as pods still say it; clocks of nodes may differ."""
    starts = [whole_seconds(pod.run_started) for pod in situation.observed.pods if pod.run_started]
    return min(situation.stamp, max(situation.start, min(starts, default=situation.stamp)))


def _run(job: Job, listed: tuple[Condition, ...], now: datetime) -> tuple[Condition, ...]:
    text = reasons.RUNNING_MESSAGE.format(job=job)
    return conditions.put(listed, reasons.RUNNING, reasons.TFJOB_RUNNING, text, now)


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
    """Whether tasks have no running pod yet: a job is Restarting until all have one."""
    return any(role.absent or role.pending or role.stale or role.leaving or role.unknown for role in census)
