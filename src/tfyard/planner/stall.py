"""Stalls: the tasks that decide run and have written no line for as long as the job allows.

A program that hangs neither fails nor ends. The clock starts anew with each line of the task that decides, and
with each start of a task that trains: until its peers are up again, a task is silent for a good reason. Where
several tasks decide, the first of those that have not finished is watched: the job cannot succeed without it.

What a log says may be older than the decision. Its last line is asked for when it could show a stall, and while it
shows one, never more often than every quarter of the time that the job allows, nor than the site allows: users
choose the first, and a second would cost a request to a kubelet each time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import EVALUATOR, Job, LastLine, LogLook, Pod, Stall, shortened, tensorflow_container
from tfyard.model.durations import write_duration

from . import reasons
from .census import GivenUp, RoleCensus
from .leaders import leaders, leading_role
from .restart import Verdict
from .situation import Situation
from .success import has_succeeded

SHARE = 4
"""Looks at a log in the time that a job allows, at most."""
RARER = 20
"""How many times rarer the looks of an operator are that may not read logs: it waits for an administrator."""
LONGEST_LINE = 200
"""Letters of a line in the status of a job."""

State = Literal["not watched", "unknown", "forbidden", "goes on", "stalled"]
"""
not watched  the job does not ask for it, or a task that trains does not run
unknown      no look is new enough to tell
forbidden    the operator may not read logs
"""


class StallReview(Struct, frozen=True, kw_only=True):
    state: State = "not watched"
    pod: Pod | None = None
    """The pod whose log decides; if it has stalled, with the last line as its message."""
    message: str = ""
    """The stall in a sentence; empty: there is none."""
    restarts: bool = False
    """Whether all tasks are to start again because of it."""
    look: LogLook | None = None
    """The log to look at now."""
    wake_after: float | None = None
    is_blind: bool = False
    """Whether no look at the log has told anything yet."""


def review(situation: Situation) -> StallReview:
    policy, pod = situation.job.run_policy.stall, _watched(situation)
    if policy is None or pod is None:
        return StallReview(is_blind=policy is not None)
    line, start = situation.observed.lines.get(pod.uid), _started(situation, pod)
    allowed = timedelta(seconds=policy.after)
    last = max(start, line.at) if line and line.at else start
    due = max(last + allowed, _next_look(situation, line, start, allowed))
    left = (due - situation.now).total_seconds()
    stall = StallReview(
        state=_state(line, last + allowed, situation.now),
        pod=pod,
        look=LogLook(pod.name, pod.uid, _container(situation.job, pod)) if left <= 0 else None,
        wake_after=left if left > 0 else None,
        is_blind=line is None or bool(line.problem),
    )
    return _stalled(stall, policy, line, start) if stall.state == "stalled" else stall


def judge(stall: StallReview, situation: Situation, verdict: Verdict) -> Verdict:
    """The verdict, in which the task that has stalled is given up if the job wants that. A stall is no failure of
    one attempt after the other, so its task never waits for the next."""
    if not stall.restarts or stall.pod is None or has_succeeded(situation):
        return verdict
    if verdict.fatal or verdict.given_up or verdict.is_undecided:
        return verdict
    return replace(
        verdict, stalled=(stall.pod,), why_stalled=stall.message, given_up=(GivenUp(stall.pod, counts=True),)
    )


def _watched(situation: Situation) -> Pod | None:
    """The running pod of the first task that decides and has not finished; None while a task that trains does not
    run. Upstream knows no stalls."""
    role = leading_role(situation.job)
    if role is None or situation.site.kubeflow:
        return None
    census = situation.census.roles[role.name]
    left = leaders(situation.job) - census.finished
    pod = next((pod for pod in census.running if left and pod.task.index == min(left)), None)
    if pod is None or not _runs(pod) or not all(map(_is_complete, _training(situation))):
        return None
    return pod


def _training(situation: Situation) -> Iterator[RoleCensus]:
    """The roles whose tasks wait for each other; in elastic training, workers come and go."""
    if not situation.job.dynamic_workers:
        yield from (role for role in situation.census if role.role.name != EVALUATOR)


def _is_complete(role: RoleCensus) -> bool:
    away = role.absent or role.pending or role.leaving or role.stale or role.unknown
    return not away and all(map(_runs, role.running))


def _runs(pod: Pod) -> bool:
    return pod.running_since is not None and not pod.restart_due


def _started(situation: Situation, pod: Pod) -> datetime:
    """The last start of a task that trains, or the end of one that decided before."""
    times = [pod.running_since]
    for role in _training(situation):
        times += [each.running_since for each in role.running]
        times += [each.run_ended for each in role.done]
    return max(time for time in times if time)


def _next_look(situation: Situation, line: LastLine | None, start: datetime, allowed: timedelta) -> datetime:
    least = timedelta(seconds=situation.site.log_interval)
    if line is None:
        return start + least
    rarer = RARER if line.problem == "forbidden" else 1
    return line.seen + max(allowed / SHARE, least * rarer)


def _state(line: LastLine | None, due: datetime, now: datetime) -> State:
    if line is not None and line.problem == "forbidden":
        return "forbidden"
    if now < due:
        return "goes on"
    return "unknown" if line is None or line.problem or line.seen < due else "stalled"


def _stalled(stall: StallReview, policy: Stall, line: LastLine | None, start: datetime) -> StallReview:
    assert stall.pod is not None
    assert line is not None
    text = shortened(line.text, LONGEST_LINE)
    message = reasons.STALLED_MESSAGE if text and line.at else reasons.SILENT_MESSAGE
    at = _stamp(line.at if text and line.at else start)
    return replace(
        stall,
        pod=replace(stall.pod, reason=reasons.STALLED, message=text),
        message=message.format(
            task=stall.pod.task.name, after=write_duration(policy.after), at=at, line=text
        ),
        restarts=policy.then == "restart" and stall.look is None,  # what a newer look shows, decides
    )


def _container(job: Job, pod: Pod) -> str:
    role = job.role(pod.task.role)
    return str(tensorflow_container(role.template)["name"]) if role else ""


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
