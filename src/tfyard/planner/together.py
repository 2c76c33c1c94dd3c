"""One new start of all tasks.

Under every policy, if a task fails because another one was taken away: its peers would fail one after the other.
If a task has stalled, in a job that wants it: whichever of them hangs. In jobs with `together`, whenever one task
must start again. All attempts are raised by one status, before anything is deleted; new pods are created when the
old ones are gone, so that two starts never meet.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tfyard.model import WORKER, Disruption, Pod

from . import backoff, disruption, reasons
from .census import GivenUp
from .disruption import Aftermath
from .restart import Verdict
from .situation import Situation
from .success import has_succeeded

QUIET = 10.0
"""Seconds without a further disruption until a job with `together` starts again: a drain of many nodes is one."""
TO_THE_SECOND = 1.0
"""Seconds added to that: the begin of a disruption is stored in whole seconds."""


def applies(situation: Situation) -> bool:
    """Whether tasks always start together; upstream knows no such jobs."""
    return situation.job.together and not situation.site.kubeflow


def review(aftermath: Aftermath, verdict: Verdict) -> Verdict:
    """The verdict, with all other pods given up if all tasks must start again."""
    situation, cause = aftermath.situation, _cause(aftermath, verdict)
    if not cause or verdict.fatal or has_succeeded(situation):
        return verdict
    gone = {each.pod.uid for each in verdict.given_up}
    rest = (pod for role in situation.census for pod in role.unfinished if pod.uid not in gone)
    given_up = _counted_once(verdict.given_up) if applies(situation) else verdict.given_up
    return replace(verdict, given_up=given_up, with_them=tuple(map(GivenUp, rest)), all_again=cause)


def applied(situation: Situation, verdict: Verdict) -> Situation:
    """The situation after a new start of all. Where all workers must finish, those that have finished run again:
    the others would wait for them."""
    situation = situation.give_up(verdict.with_them)
    if not verdict.all_again or not applies(situation) or situation.job.success != "AllWorkers":
        return situation
    return replace(situation, census=situation.census.reopened(WORKER))


def remembered(disruption: Disruption | None, aftermath: Aftermath, verdict: Verdict) -> Disruption | None:
    """The disruption that the status remembers: one new start for each."""
    present = aftermath.disruption
    if present is None:
        return disruption
    is_used = bool(verdict.all_again) and aftermath.is_open
    return replace(present, restarted=True, recovered=None, restarts={}) if is_used else present


def is_held(situation: Situation, disruption: Disruption | None) -> bool:
    """Whether missing pods wait: for the end of pods of the start before, or for the end of a burst."""
    census, is_together = situation.census, applies(situation)
    if not is_together and not (disruption and disruption.restarted) and not _has_stalled(situation):
        return False
    old = any(role.stale for role in census)
    if not is_together:
        return old and not any(role.unfinished for role in census)
    return old or bool(census.excess) or wake_after(situation, disruption) > 0


def wake_after(situation: Situation, disruption: Disruption | None) -> float:
    """Seconds until pods of a job with `together` may be created: all wait as long as one of them."""
    if not applies(situation):
        return 0.0
    waits = [*backoff.waits(situation)]
    if disruption and disruption.restarted and any(role.absent or role.stale for role in situation.census):
        waits.append(QUIET + TO_THE_SECOND - (situation.now - disruption.since).total_seconds())
    return max(waits, default=0.0)


def _cause(aftermath: Aftermath, verdict: Verdict) -> str:
    """A sentence that says why all tasks start again; empty: they do not."""
    job, lost = aftermath.situation.job, aftermath.disruption
    if verdict.stalled:
        return reasons.STALL_RESTARTED_MESSAGE.format(job=job, stall=verdict.why_stalled)
    failed = (*verdict.lost, *aftermath.failed_again)
    if lost and failed:
        return reasons.PEER_LOST_MESSAGE.format(job=job, taken=disruption.names(lost), failed=_names(failed))
    if not applies(aftermath.situation):
        return ""
    if _is_scaled(aftermath.situation):
        return reasons.SCALED_MESSAGE.format(job=job)
    if lost and aftermath.is_new:
        return reasons.TAKEN_MESSAGE.format(job=job, taken=disruption.names(lost))
    if verdict.restarted:
        return reasons.ALL_FAILED_MESSAGE.format(job=job, failed=_names(verdict.restarted))
    return reasons.TAKEN_MESSAGE.format(job=job, taken=_names(verdict.replaced)) if verdict.replaced else ""


def _has_stalled(situation: Situation) -> bool:
    """Whether the status tells that all tasks were started again because of a stall."""
    stall = situation.before.condition(reasons.STALLED)
    return stall is not None and stall.reason == reasons.STALL_RESTARTED


def _names(pods: Iterable[Pod]) -> str:
    return ", ".join(sorted({pod.task.name for pod in pods})[: disruption.NAMED_TASKS])


def _counted_once(given_up: tuple[GivenUp, ...]) -> tuple[GivenUp, ...]:
    """The verdict in which one failure is one retry, however many tasks fail with it."""
    first = next((each for each in given_up if each.counts), None)
    return tuple(replace(each, counts=each is first) for each in given_up)


def _is_scaled(situation: Situation) -> bool:
    """Whether pods list other tasks than the job has now. A group in Kueue cannot grow: it is changed by a
    suspension."""
    shown = {name: role.size for name, role in situation.before.replica_statuses.items()}
    has_pods = any(role.unfinished for role in situation.census)
    sizes = {role.name: role.replicas for role in situation.job.roles}
    return bool(shown) and has_pods and not situation.setup.queued and shown != sizes
