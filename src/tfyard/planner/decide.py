"""The one decision: a job and the observed world in, a new status and what to do out.

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

from . import (
    backoff,
    cleanup,
    deadline,
    disruption,
    endings,
    gang,
    kueue,
    narrate,
    plan,
    reasons,
    restart,
    results,
    sidecars,
    stall,
    status,
    suspend,
    together,
    unreadable,
    waiting,
)
from .census import Census, GivenUp
from .restart import Verdict
from .site import Site
from .situation import Situation, survey, whole_seconds
from .success import has_succeeded

OURS = "kubeflow.org/training-operator"
"""The managedBy value of TFJobs for upstream's operator, which tfyard's operator replaces."""


def decide(job: Job, observed: Observed, site: Site, now: datetime) -> Decision:
    """The first of these that holds decides: the job is ignored, has ended, cannot be read, is suspended, or waits
    for names that another job has. Otherwise its pods are judged."""
    if is_ignored(job, observed.deleting):
        return Decision(status=observed.status)
    if observed.status.is_finished:
        after = status.complete(job, observed.status, whole_seconds(now))
        return _finished(job, observed, site, after, now)
    if job.problems:
        return _unreadable(job, observed, site, now)
    situation = survey(job, observed, site, now)
    if job.run_policy.suspend:
        return _suspended(situation)
    if observed.namesake:
        return _blocked(situation)
    return _active(situation.give_up(suspend.pods_still_leaving(situation)))


def may_restart_in_place(job: Job, observed: Observed, site: Site, now: datetime) -> bool:
    """Whether the job's limit allows the restarts in place that are due, for nodes that can ask."""
    aftermath = disruption.review(survey(job, observed, site, now))
    return restart.may_restart_in_place(job, aftermath.situation.census, kubeflow=site.kubeflow)


def is_ignored(job: Job, deleting: bool) -> bool:
    """Whether another controller manages this job, or it is being deleted, and its children with it."""
    return deleting or job.run_policy.managed_by not in (None, "", OURS)


def status_unreadable(job: Job, problems: Iterable[str]) -> Event:
    """The warning about an unreadable status, which is not overwritten: a newer operator may read it."""
    text = reasons.listed(reasons.STATUS_UNREADABLE_MESSAGE.format(job=job), problems)
    return Event("Warning", reasons.STATUS_UNREADABLE, text)


def _unreadable(job: Job, observed: Observed, site: Site, now: datetime) -> Decision:
    if unreadable.was_never_readable(observed):
        after = unreadable.refuse(job, observed.status, whole_seconds(now))
        events = tuple(narrate.tell(job, observed.status, after, Verdict()))
        return replace(_finished(job, observed, site, after, now), events=events)
    situation = survey(unreadable.with_known_roles(job, observed), observed, site, now)
    return _suspended(situation) if job.run_policy.suspend else _blocked(situation)


def _blocked(situation: Situation) -> Decision:
    """The decision for a job that waits for a change by the user; its pods stay as they are. Restarts in place and
    time still count against its limits."""
    given_up = tuple(unreadable.pods_leaving(situation))
    judged = situation.give_up(given_up)
    after = replace(_started(judged, gang.GangReview()), endings=endings.remember(situation))
    failure = restart.failure(judged, Verdict()) or deadline.failure(judged)
    if failure:
        return _ended(situation, given_up, Verdict(), status.fail(after, failure, judged.stamp))
    after = status.count(judged.job, after, judged.census)
    return Decision(
        status=after,
        events=_events(judged, after, Verdict()),
        wake_after=_soonest(deadline.remaining(judged)),
        urgency=_urgency(judged, after, ()),
    )


def _active(situation: Situation) -> Decision:
    """The decision for a job under way: judge the pods, derive the job's status, then plan the actions."""
    aftermath = disruption.review(situation)
    situation, group = aftermath.situation, gang.review(aftermath.situation)
    ruled = restart.judge(situation, forgives=aftermath.is_open, undecided=aftermath.undecided)
    stalls = stall.review(situation)
    ruled = stall.judge(stalls, situation, ruled)
    verdict = together.review(aftermath, ruled)
    given_up = (*verdict.given_up, *_unique(group.given_up, verdict))
    judged = together.applied(situation.give_up(given_up), verdict)
    waits = waiting.review(judged)
    begun = _noting_stall(judged, verdict, _started(judged, group), stalls)
    after = _outcome(judged, verdict, begun, waits)
    after = _remembering(after, aftermath, verdict)
    if after.is_finished:
        return _ended(situation, given_up, verdict, after)
    after = status.count(judged.job, after, judged.census)
    now, gone = judged.now, _pods_to_delete(judged.census)
    lingering = sidecars.lingering(judged.observed.pods, besides=gone)
    actions: tuple[Action, ...] = (
        *plan.delete_pods(gone, now),
        *sidecars.end(lingering, now),
        *plan.plan(judged, group, is_held=together.is_held(judged, after.disruption)),
    )
    together_in = together.wake_after(judged, after.disruption)
    pauses = (*backoff.waits(judged), together_in, sidecars.next_end(lingering, now))
    times = (deadline.remaining(judged), group.wake_after, waits.wake_after, aftermath.wake_after, *pauses)
    times = (*times, stalls.wake_after)
    return Decision(
        status=after,
        actions=actions,
        events=_events(judged, after, verdict),
        wake_after=_soonest(*times, *_overdue(gone, now)),
        urgency=_urgency(judged, after, actions),
        look=None if verdict.is_restart else stalls.look,
    )


def _noting_stall(
    situation: Situation, verdict: Verdict, started: Status, silence: stall.StallReview
) -> Status:
    if verdict.stalled and _failure(situation, verdict) is None:
        return status.note_stall_restart(started, verdict, situation.stamp)
    return status.note_stall(situation.job, started, silence, situation.stamp)


def _unique(given_up: Iterable[GivenUp], verdict: Verdict) -> list[GivenUp]:
    """The pods that the verdict does not give up anyway."""
    uids = {each.pod.uid for each in verdict.with_them}
    return [each for each in given_up if each.pod.uid not in uids]


def _remembering(after: Status, aftermath: disruption.Aftermath, verdict: Verdict) -> Status:
    """The status with how attempts ended, and with the last disruption."""
    lost, uids = aftermath.disruption, {*aftermath.forgiven, *(pod.uid for pod in verdict.lost)}
    peers = dict.fromkeys(uids, disruption.names(lost)) if lost else {}
    return replace(
        after,
        endings=endings.remember(aftermath.situation, verdict.over, peers),
        disruption=together.remembered(after.disruption, aftermath, verdict),
    )


def _started(situation: Situation, group: gang.GangReview) -> Status:
    """The status of a job under way, before its outcome or progress is added."""
    job, now = situation.job, situation.stamp
    after = status.begin(job, situation.before, situation.setup.cluster(), situation.start)
    after = replace(after, conditions=suspend.resumed(job, after, now), start_time=situation.start)
    obstacles = (
        *unreadable.obstacles(job),
        *_namesake(situation),
        *situation.observed.obstacles,
        group.obstacle,
        kueue.obstacle(situation),
    )
    return status.note_obstacles(after, [obstacle for obstacle in obstacles if obstacle], now)


def _namesake(situation: Situation) -> list[Obstacle]:
    text = reasons.NAMESAKE_MESSAGE.format(job=situation.job, other=situation.observed.namesake)
    return [Obstacle(reasons.NAME_TAKEN, text)] if situation.observed.namesake else []


def _outcome(situation: Situation, verdict: Verdict, started: Status, waits: waiting.WaitingReview) -> Status:
    """The status after success, failure or progress. Success is checked first: when the chief has finished,
    workers often fail because it is gone."""
    if has_succeeded(situation):
        return status.succeed(situation, started)
    failure = _failure(situation, verdict)
    if failure:
        return status.fail(started, failure, situation.stamp)
    return status.progress(situation, status.note_wait(started, waits, situation.stamp), verdict, waits)


def _failure(situation: Situation, verdict: Verdict) -> Failure | None:
    return restart.failure(situation, verdict) or deadline.failure(situation)


def _ended(situation: Situation, given_up: Iterable[GivenUp], verdict: Verdict, after: Status) -> Decision:
    """The decision that ends a job. Pods that would have been restarted are counted as failed."""
    failed = {pod.uid for pod in (*verdict.restarted, *verdict.stalled)}
    census = situation.census.give_up(each for each in given_up if each.pod.uid not in failed)
    census = census.without_restarts() if after.has(reasons.FAILED) else census
    after = status.count(situation.job, after, census)
    events = _events(situation, after, verdict)
    after = status.count_active_as_succeeded(after) if after.has(reasons.SUCCEEDED) else after
    going = cleanup.going_on(situation.job, situation.observed, situation.site, after, situation.now)
    after = results.settle(situation.job, after, situation.observed.pods, going)
    done = _finished(situation.job, situation.observed, situation.site, after, situation.now)
    return replace(done, events=events)


def _finished(job: Job, observed: Observed, site: Site, after: Status, now: datetime) -> Decision:
    """The decision for a finished job: its remaining objects are cleaned up."""
    actions = tuple(cleanup.clean_up(job, observed, site, after, now))
    grace = cleanup.grace_remaining(job, observed, after, now) or None
    gone = observed.pods if cleanup.policy(job, after) != "None" else ()
    sidecars_end = sidecars.next_end(sidecars.lingering(observed.pods), now)
    wake = _soonest(cleanup.ttl_remaining(job, after, now), grace, sidecars_end, *_overdue(gone, now))
    return Decision(status=after, actions=actions, wake_after=wake)


def _suspended(situation: Situation) -> Decision:
    """The decision for a suspended job: all pods are deleted, finished tasks and restarts remembered."""
    job, observed, now = situation.job, situation.observed, situation.stamp
    after = status.begin(job, situation.before, situation.setup.cluster(), now)
    after = status.note_obstacles(after, unreadable.obstacles(job), now)
    after = status.note_wait(after, waiting.WaitingReview(), now)
    after = status.note_stall(job, after, stall.StallReview(), now)
    listed = suspend.suspended(job, after, now)
    after = replace(after, conditions=listed, endings=endings.remember(situation), disruption=None)
    census = situation.census.give_up(suspend.pods_to_remember(situation)).without_pods()
    after = status.count(job, after, census)
    return Decision(
        status=after,
        actions=tuple(suspend.stop_all(job, observed, situation.now)),
        events=_events(situation, after, Verdict()),
        wake_after=_soonest(*_overdue(observed.pods, situation.now)),
    )


def _events(situation: Situation, after: Status, verdict: Verdict) -> tuple[Event, ...]:
    job, before = situation.job, situation.before
    warnings = () if before.conditions else narrate.warn(job, situation.setup)
    return (*warnings, *narrate.tell(job, before, after, verdict))


def _urgency(situation: Situation, after: Status, actions: tuple[Action, ...]) -> Urgency:
    """How long the status may wait, to be stored together with later changes. Restarts and ends never wait."""
    before = situation.before
    if after == before or _must_be_stored_first(situation, actions):
        return "now"
    if not actions and _differs_in_counts_only(before, after):
        return "seldom" if before.has(reasons.WAITING) else "at rest"
    if not actions and _explains_only(before, after):
        return "seldom"
    types = {condition.type for condition in after.conditions}
    if not types <= {reasons.CREATED, reasons.RUNNING, reasons.WAITING} or (actions and before.conditions):
        return "now"
    return "later" if types == {reasons.CREATED} and not before.conditions else "soon"


def _must_be_stored_first(situation: Situation, actions: tuple[Action, ...]) -> bool:
    """Whether the status must be stored before the actions: a deleted pod can no longer show that its task has
    finished, and the grouping of a job's pods must be known before they exist."""
    setup = situation.setup
    is_grouped = setup.gang is not None or setup.queued > 0
    is_leaving = any(pod.deleting for pod in situation.observed.pods)
    deletes = any(isinstance(action, Delete) for action in actions)
    return is_leaving or deletes or (is_grouped and not situation.before.conditions)


def _differs_in_counts_only(before: Status, after: Status) -> bool:
    seen = replace(
        after, replica_statuses=before.replica_statuses, tasks=before.tasks, endings=before.endings
    )
    return replace(seen, disruption=before.disruption) == before


def _explains_only(before: Status, after: Status) -> bool:
    """Whether only the reason of a wait has changed, or a task in a crash loop has crashed once more."""
    if not (before.has(reasons.WAITING) or after.has(reasons.WAITING)):
        return False
    others = [c for c in after.conditions if c.type != reasons.WAITING]
    same = others == [c for c in before.conditions if c.type != reasons.WAITING]
    seen = replace(after, conditions=before.conditions, phase=before.phase, restarts=before.restarts)
    return same and _differs_in_counts_only(before, seen)


def _pods_to_delete(census: Census) -> list[Pod]:
    return [*census.excess, *(pod for role in census for pod in (*role.stale, *role.leaving))]


def _overdue(pods: Iterable[Pod], now: datetime) -> list[float]:
    return [plan.overdue_in(pod, now) for pod in pods if pod.deleting is not None]


def _soonest(*times: float | None) -> float | None:
    """Seconds until the next pass. This decision acted on times that have passed; a change that follows from that
    causes a pass by itself."""
    return min((time for time in times if time is not None and time > 0), default=None)
