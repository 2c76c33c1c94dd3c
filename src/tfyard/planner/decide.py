"""The one decision: a job and the world in, a new status and what to do out.

Status first, plan second. A restart is written into the status before anything is deleted or created, so a
crash between the two repeats a step and never loses or doubles a restart.
"""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from tfyard.model import (
    Action,
    Decision,
    Delete,
    Event,
    Failure,
    Job,
    Observed,
    Obstacle,
    Pod,
    Status,
    Urgency,
)

from . import cleanup, deadline, gang, kueue, narrate, plan, reasons, restart, status, suspend
from .census import Census, take_census
from .restart import Verdict
from .site import Site, settle
from .success import has_succeeded

OURS = "kubeflow.org/training-operator"
"""The managedBy value that TFJobs for upstream's operator carry; we are its successor."""


def decide(job: Job, observed: Observed, site: Site, now: datetime) -> Decision:
    if is_hands_off(job, observed.deleting):
        return Decision(status=observed.status)
    if observed.status.is_finished:
        return _finished(job, observed, status.inherit(job, observed.status, _stamp(now)), now)
    site = settle(job, observed, site)
    census = take_census(job, observed)
    if job.run_policy.suspend:
        return _suspended(job, observed, census, site, now)
    return _active(job, observed, census, site, now)


def refuse(job: Job, before: Status, problems: list[str], now: datetime) -> tuple[Status, Event]:
    """A job that cannot be read has failed, for all the reasons at once."""
    text = _listed(reasons.INVALID_MESSAGE.format(job=job), problems)
    after = status.begin(job, before, before.cluster or Site().cluster(), _stamp(now))
    after = status.fail(after, Failure(cause="InvalidSpec", message=text), _stamp(now))
    after = replace(after, phase=reasons.FAILED)
    return after, Event("Warning", reasons.TFJOB_FAILED, text)


def distrust(job: Job, problems: list[str]) -> Event:
    """A status that cannot be read is not written either: whoever wrote it may know what it means."""
    text = _listed(reasons.STATUS_UNREADABLE_MESSAGE.format(job=job), problems)
    return Event("Warning", reasons.STATUS_UNREADABLE, text)


def _listed(text: str, problems: list[str]) -> str:
    """In one line: a table shows no more than the first, and `describe` loses its columns at the second."""
    return f"{text} {'; '.join(problems)}"


def is_hands_off(job: Job, deleting: bool) -> bool:
    """Somebody else keeps this job, or it is being deleted and its children go by owner reference."""
    return deleting or job.run_policy.managed_by not in (None, "", OURS)


def _active(job: Job, observed: Observed, census: Census, site: Site, now: datetime) -> Decision:
    before = observed.status
    if before.has(reasons.SUSPENDED):
        suspend.see_off(census)
    verdict = restart.judge(job, census)
    gang.disband(job, census, observed, site)
    started = _started(job, observed, site, _stamp(now))
    patience = gang.patience_left(started.start_time, now)
    obstacles = (*observed.obstacles, *_waits(job, observed, census, site, patience))
    started = status.note_obstacles(started, obstacles, _stamp(now))
    after = _outcome(job, started, census, verdict, now)
    if after.is_finished:
        restart.revoke(census, verdict)
    after = status.count(job, after, census)
    events = (*_warnings(job, before, site), *narrate.tell(job, before, after, verdict))
    if after.is_finished:
        after = status.credit_active(after) if after.has("Succeeded") else after
        return replace(_finished(job, observed, after, now), events=events)
    gone = _gone(census)
    actions: tuple[Action, ...] = (*plan.departures(gone, now), *plan.plan(job, observed, census, site))
    is_waiting = gang.wait(job, observed, census, site) is not None
    times = (deadline.remaining(job, after.start_time, now), patience if is_waiting else None)
    return Decision(
        status=after,
        actions=actions,
        events=events,
        wake_after=_soonest(*times, *_overdue(gone, now)),
        urgency=_urgency(observed, after, actions, site),
    )


def _urgency(observed: Observed, after: Status, actions: Iterable[Action], site: Site) -> Urgency:
    """A pod that is being deleted soon cannot tell any more that its task is finished; and what holds a job's pods
    together is chosen before they are there."""
    before, idle = observed.status, not actions
    leaving = any(pod.deleting for pod in observed.pods) or any(isinstance(a, Delete) for a in actions)
    is_grouped = site.gang is not None or site.queued > 0
    if leaving or after == before or (is_grouped and not before.conditions):
        return "now"
    if idle and replace(after, replica_statuses=before.replica_statuses, tasks=before.tasks) == before:
        return "at rest"
    goes_well = {condition.type for condition in after.conditions} <= {reasons.CREATED, reasons.RUNNING}
    return "soon" if goes_well and (idle or not before.conditions) else "now"


def _outcome(job: Job, started: Status, census: Census, verdict: Verdict, now: datetime) -> Status:
    """Success goes first: when the chief is done, workers often die of losing it."""
    if has_succeeded(job, census):
        return status.succeed(job, started, _stamp(now))
    failure = restart.failure(job, census, verdict) or deadline.failure(job, started.start_time, now)
    if failure:
        return status.fail(started, failure, _stamp(now))
    return status.progress(job, started, census, verdict, _stamp(now))


def _started(job: Job, observed: Observed, site: Site, now: datetime) -> Status:
    before = observed.status
    after = status.begin(job, before, site.cluster(), now)
    start = now if before.start_time is None or before.has("Suspended") else before.start_time
    return replace(after, conditions=suspend.resumed(job, after, now), start_time=start)


def _waits(job: Job, observed: Observed, census: Census, site: Site, patience: float) -> Iterable[Obstacle]:
    """What keeps pods from being made, though nothing was refused."""
    waiting = gang.wait(job, observed, census, site)
    if waiting is not None and patience <= 0:
        yield waiting
    missing = sum(len(role.absent) for role in census)
    too_small = kueue.too_small(job, observed, missing, site)
    if too_small is not None:
        yield too_small


def _warnings(job: Job, before: Status, site: Site) -> Iterable[Event]:
    return () if before.conditions else narrate.warn(job, site)


def _suspended(job: Job, observed: Observed, census: Census, site: Site, now: datetime) -> Decision:
    before = observed.status
    suspend.put_to_rest(job, census)
    after = status.begin(job, before, site.cluster(), _stamp(now))
    after = replace(after, conditions=suspend.suspended(job, after, _stamp(now)), phase="Suspended")
    after = status.count(job, after, census)
    return Decision(
        status=after,
        actions=tuple(suspend.clear(job, observed, now)),
        events=(*_warnings(job, before, site), *narrate.tell(job, before, after, Verdict())),
        wake_after=_soonest(*_overdue(observed.pods, now)),
    )


def _finished(job: Job, observed: Observed, after: Status, now: datetime) -> Decision:
    actions = tuple(cleanup.clean_up(job, observed, after, now))
    grace = cleanup.grace_remaining(job, observed, after, now) or None
    doomed = observed.pods if cleanup.policy(job, after) != "None" else ()
    wake = _soonest(cleanup.ttl_remaining(job, after, now), grace, *_overdue(doomed, now))
    return Decision(status=after, actions=actions, wake_after=wake)


def _stamp(now: datetime) -> datetime:
    """Kubernetes stores whole seconds: a finer time would differ from itself after being read back."""
    return now.replace(microsecond=0)


def _gone(census: Census) -> list[Pod]:
    return [*census.excess, *(pod for role in census for pod in (*role.stale, *role.leaving))]


def _overdue(pods: Iterable[Pod], now: datetime) -> list[float]:
    return [plan.overdue_in(pod, now) for pod in pods if pod.deleting is not None]


def _soonest(*times: float | None) -> float | None:
    """Times that have passed were acted upon in this very decision; the world's answer wakes us then."""
    return min((time for time in times if time is not None and time > 0), default=None)
