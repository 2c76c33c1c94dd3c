"""Rulings about pods that failed or are being deleted.

The restart policy of the role decides about a program's own failure. A pod that was taken away (drain, preemption,
node pressure, a lost node, `kubectl delete`) says nothing about the program: it is replaced under every policy and
costs no retry. Kubernetes' own Job counts such pods unless its podFailurePolicy says otherwise; a TFJob has no
such field, and a job should not fail because its cluster is busy.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from tfyard.model import WORKER, Failure, Job, Pod, Role, TaskBackoff
from tfyard.model.container_reasons import START_ERRORS
from tfyard.model.exit_codes import may_restart

from . import backoff, reasons
from .census import Census, GivenUp
from .leaders import leaders, leading_role
from .situation import Situation

MESSAGE_LINES = 12
MESSAGE_LENGTH = 800
"""The end of a log must not be what is cut of a condition."""

Ruling = Literal["restart", "forgive", "replace", "drop", "fatal", "keep"]
"""
restart  it failed by itself and may try again: counts against the limit
forgive  it failed because another task was taken away: all tasks start again, and that costs nothing
replace  the cluster or a person took it away: costs nothing
drop     like replace, and not worth an event: it had not started
fatal    it failed by itself and may not try again
keep     nothing to decide
"""


ANOTHER_ATTEMPT = ("restart", "forgive", "replace", "drop")


class Verdict(Struct, frozen=True, kw_only=True):
    restarted: tuple[Pod, ...] = ()
    lost: tuple[Pod, ...] = ()
    """Pods that failed because other tasks were taken away."""
    replaced: tuple[Pod, ...] = ()
    fatal: tuple[Pod, ...] = ()
    stalled: tuple[Pod, ...] = ()
    """Pods that are given up because their program hangs."""
    why_stalled: str = ""
    is_undecided: bool = False
    """Whether ends of programs are judged later, and so are limits."""
    waits: tuple[str, ...] = ()
    """Sentences that say which tasks wait for their next attempt, how long and why."""
    given_up: tuple[GivenUp, ...] = ()
    """Every pod whose attempt is over, in the order in which to delete them."""
    with_them: tuple[GivenUp, ...] = ()
    """The other pods, if all tasks start again."""
    all_again: str = ""
    """A sentence that says why all tasks start again; empty: they do not."""

    @property
    def over(self) -> tuple[Pod, ...]:
        """Pods whose attempt is over by itself, and whose ending is stored in the status."""
        return (*self.fatal, *self.stalled, *self.restarted, *self.lost, *self.replaced)

    @property
    def is_restart(self) -> bool:
        return bool(self.restarted or self.replaced or self.all_again)


def judge(
    situation: Situation, *, forgives: bool = False, undecided: frozenset[str] = frozenset()
) -> Verdict:
    """Decide about each pod that failed or is being deleted; `forgives`: tasks were taken away a moment ago, so
    failures are not the program's; `undecided`: uids of failed pods that are judged later."""
    rulings = [
        (pod, _forgiven(ruling) if forgives else ruling)
        for pod, ruling in _rulings(situation)
        if pod.uid not in undecided
    ]
    given_up = tuple(_give_up(situation, pod, ruling) for pod, ruling in rulings if ruling in ANOTHER_ATTEMPT)

    def ruled(wanted: Ruling) -> tuple[Pod, ...]:
        return tuple(pod for pod, ruling in rulings if ruling == wanted)

    return Verdict(
        restarted=ruled("restart"),
        lost=ruled("forgive"),
        replaced=ruled("replace"),
        fatal=ruled("fatal"),
        is_undecided=bool(undecided),
        waits=tuple(_wait(situation, each, each.backoff) for each in given_up if each.backoff),
        given_up=given_up,
    )


def _forgiven(ruling: Ruling) -> Ruling:
    return "forgive" if ruling in ("restart", "fatal") else ruling


def _give_up(situation: Situation, pod: Pod, ruling: Ruling) -> GivenUp:
    if ruling == "forgive":
        return GivenUp(pod)
    return GivenUp(pod, counts=ruling == "restart", backoff=backoff.after(situation, pod))


def _wait(situation: Situation, gone: GivenUp, wait: TaskBackoff) -> str:
    cause = _ending(gone.pod) if gone.counts else reasons.TAKEN_AWAY
    return backoff.explain(situation, gone.pod, wait, cause)


def _rulings(situation: Situation) -> Iterator[tuple[Pod, Ruling]]:
    for role in situation.census:
        yield from ((pod, _rule_failed(situation, role.role, pod)) for pod in role.failed)
        yield from ((pod, _rule_leaving(pod)) for pod in role.leaving)


def _rule_failed(situation: Situation, role: Role, pod: Pod) -> Ruling:
    """The ruling about a failed pod. Upstream ignores why a pod failed: under Never, an eviction ends the job."""
    if pod.disrupted and not (situation.site.kubeflow and role.restart == "Never"):
        return "replace"
    is_hopeless = role.restart == "ExitCode" and pod.reason in START_ERRORS and not situation.site.kubeflow
    if may_restart(role.restart, pod.exit_code) and not is_hopeless:
        return "restart"
    return "keep" if is_tolerated(situation.job, pod) else "fatal"


def _rule_leaving(pod: Pod) -> Ruling:
    """The ruling about a pod that is being deleted. It is given up at once: its count of restarts is lost with it,
    and a program that saves its work and exits 0 because it was stopped has not finished."""
    if pod.phase != "Pending":
        return "replace"
    return "drop" if pod.restarts else "keep"


def is_tolerated(job: Job, pod: Pod) -> bool:
    """Whether the job survives this permanent failure: of elastic workers, in v1alpha1 of all but the chief."""
    if job.dynamic_workers and pod.task.role == WORKER:
        return True
    if job.fails_with == "chief":
        role = leading_role(job)
        return role is not None and (pod.task.role != role.name or pod.task.index not in leaders(job))
    return False


def failure(situation: Situation, verdict: Verdict) -> Failure | None:
    """Why the job fails; None: it goes on."""
    job, census = situation.job, situation.census
    if verdict.fatal:
        pod = verdict.fatal[0]
        count = sum(other.task.role == pod.task.role for other in verdict.fatal)
        text = reasons.TASK_FAILED_MESSAGE.format(
            job=job, count=count, role=pod.task.role, detail=describe(pod)
        )
        return Failure(cause="TaskFailed", task=pod.task.name, exit_code=pod.exit_code, message=text)
    limit = job.run_policy.backoff_limit
    if (
        limit is None
        or verdict.is_undecided
        or may_restart_in_place(job, census, kubeflow=situation.site.kubeflow)
    ):
        return None
    return _beyond_limit(job, _restarts_allowed(limit, kubeflow=situation.site.kubeflow), census, verdict)


def may_restart_in_place(job: Job, census: Census, *, kubeflow: bool = False) -> bool:
    """Whether the limit allows the restarts that were made and those that are due. Upstream sees a restart in
    place only after it was made."""
    limit, due = job.run_policy.backoff_limit, 0 if kubeflow else len(_failing(census))
    return limit is None or census.restarts + due <= _restarts_allowed(limit, kubeflow=kubeflow)


def _failing(census: Census) -> tuple[Pod, ...]:
    """Pods whose next restart in place follows a failure of their own."""
    return tuple(pod for pod in census.restarts_due if not pod.disrupted)


def _restarts_allowed(limit: int, *, kubeflow: bool) -> int:
    """Upstream fails a job as soon as its restarts reach the limit, or exceed a limit of 0."""
    return max(0, limit - 1) if kubeflow else limit


def _beyond_limit(job: Job, allowed: int, census: Census, verdict: Verdict) -> Failure:
    here = [pod for role in census for pod in (*role.running, *role.pending) if pod.restarts]
    pods = (*verdict.stalled, *verdict.restarted, *_failing(census)) or here
    worst = max(pods, key=lambda pod: pod.restarts, default=None)
    detail = describe(worst) if worst else _restarts(census.restarts)
    text = reasons.BACKOFF_MESSAGE.format(job=job, allowed=_restarts(allowed), detail=detail)
    task, code = (worst.task.name, worst.exit_code) if worst else ("", None)
    return Failure(cause="BackoffLimitExceeded", task=task, exit_code=code, message=text)


def explain(job: Job, verdict: Verdict) -> str:
    """A sentence that says why the job restarts, and which tasks wait before they do."""
    pods = verdict.restarted or verdict.replaced
    message = reasons.RESTARTING_MESSAGE if verdict.restarted else reasons.REPLACING_MESSAGE
    roles = ", ".join(sorted({pod.task.role for pod in pods}))
    text = verdict.all_again or message.format(job=job, roles=roles)
    return f"{text} {backoff.summarize(verdict.waits)}".rstrip()


def describe(pod: Pod) -> str:
    """A sentence that says how a task ended: its exit code, the reason, and the last lines of its log."""
    lines = "\n".join(pod.message.strip().splitlines()[-MESSAGE_LINES:])[-MESSAGE_LENGTH:]
    where = f" (init container {pod.failed_init})" if pod.failed_init else ""
    return f"{pod.task.name}{where} {_ending(pod)}" + (f": {lines}" if lines else "")


def _ending(pod: Pod) -> str:
    if pod.reason == reasons.STALLED:
        return "stalled"
    code = f"exited with code {pod.exit_code}" if pod.exit_code is not None else "failed"
    again = f" after {_restarts(pod.restarts)}" if pod.restarts else ""
    reason = f" ({pod.reason})" if pod.reason and pod.reason != "Error" else ""
    return f"{code}{again}{reason}"


def _restarts(count: int) -> str:
    return "1 restart" if count == 1 else f"{count} restarts"
