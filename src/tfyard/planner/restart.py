"""What to do about a pod that failed or is being deleted.

The restart policy of its role judges a program's own failure. A pod that was taken away (drain, preemption,
eviction, a lost node, `kubectl delete`) says nothing about the program: it is replaced under every policy, as
Kubernetes' own Job does, and costs no retry.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from tfyard.model import WORKER, Failure, Job, Pod, Role

from . import reasons
from .census import Census, GivenUp
from .exit_codes import may_restart
from .leaders import leaders, leading_role
from .situation import Situation

MESSAGE_LINES = 12
MESSAGE_LENGTH = 1024

Ruling = Literal["restart", "replace", "drop", "fatal", "keep"]
"""
restart  it failed by itself and may try again: counts against the limit
replace  the cluster or a person took it away: costs nothing
drop     like replace, and not worth an event: it had not started
fatal    it failed by itself and may not try again
keep     nothing to decide
"""


class Verdict(Struct, frozen=True, kw_only=True):
    restarted: tuple[Pod, ...] = ()
    replaced: tuple[Pod, ...] = ()
    fatal: tuple[Pod, ...] = ()
    given_up: tuple[GivenUp, ...] = ()
    """Every pod whose attempt is over, in the order in which to delete them."""


def judge(situation: Situation) -> Verdict:
    """What is to be done about each pod that failed or is being deleted."""
    rulings = list(_rulings(situation))

    def ruled(wanted: Ruling) -> tuple[Pod, ...]:
        return tuple(pod for pod, ruling in rulings if ruling == wanted)

    return Verdict(
        restarted=ruled("restart"),
        replaced=ruled("replace"),
        fatal=ruled("fatal"),
        given_up=tuple(
            GivenUp(pod, counts=ruling == "restart")
            for pod, ruling in rulings
            if ruling in ("restart", "replace", "drop")
        ),
    )


def _rulings(situation: Situation) -> Iterator[tuple[Pod, Ruling]]:
    for role in situation.census:
        yield from ((pod, _rule_failed(situation.job, role.role, pod)) for pod in role.failed)
        yield from ((pod, _rule_leaving(pod)) for pod in role.leaving)


def _rule_failed(job: Job, role: Role, pod: Pod) -> Ruling:
    if pod.disrupted:
        return "replace"
    if may_restart(role.restart, pod.exit_code):
        return "restart"
    return "keep" if is_tolerated(job, pod) else "fatal"


def _rule_leaving(pod: Pod) -> Ruling:
    """Given up at first sight: its restarts in place go with it, and a program that saves its work and exits 0
    because it was stopped has not finished."""
    if pod.phase != "Pending":
        return "replace"
    return "drop" if pod.restarts else "keep"


def is_tolerated(job: Job, pod: Pod) -> bool:
    """The job survives this permanent failure: of elastic workers, and in v1alpha1 of all but the chief."""
    if job.dynamic_workers and pod.task.role == WORKER:
        return True
    if job.fails_with == "chief":
        role = leading_role(job)
        return role is not None and (pod.task.role != role.name or pod.task.index not in leaders(job))
    return False


def failure(situation: Situation, verdict: Verdict) -> Failure | None:
    """Why the job cannot go on, if it cannot."""
    job, census = situation.job, situation.census
    if verdict.fatal:
        pod = verdict.fatal[0]
        count = sum(other.task.role == pod.task.role for other in verdict.fatal)
        text = reasons.TASK_FAILED_MESSAGE.format(
            job=job, count=count, role=pod.task.role, detail=describe(pod)
        )
        return Failure(cause="TaskFailed", task=pod.task.name, exit_code=pod.exit_code, message=text)
    limit = job.run_policy.backoff_limit
    if limit is not None and census.restarts > limit:
        return _beyond_limit(job, limit, census, verdict)
    return None


def _beyond_limit(job: Job, limit: int, census: Census, verdict: Verdict) -> Failure:
    here = [pod for role in census for pod in (*role.running, *role.pending) if pod.restarts]
    pods = verdict.restarted or here
    worst = max(pods, key=lambda pod: pod.restarts, default=None)
    detail = describe(worst) if worst else f"{census.restarts} restarts"
    text = reasons.BACKOFF_MESSAGE.format(job=job, limit=limit, detail=detail)
    task, code = (worst.task.name, worst.exit_code) if worst else ("", None)
    return Failure(cause="BackoffLimitExceeded", task=task, exit_code=code, message=text)


def explain(job: Job, verdict: Verdict) -> str:
    """Why the job restarts."""
    pods = verdict.restarted or verdict.replaced
    message = reasons.RESTARTING_MESSAGE if verdict.restarted else reasons.REPLACING_MESSAGE
    return message.format(job=job, roles=", ".join(sorted({pod.task.role for pod in pods})))


def describe(pod: Pod) -> str:
    """How a task ended, in words: its exit code, the reason, and the last lines it wrote."""
    code = f"exited with code {pod.exit_code}" if pod.exit_code is not None else "failed"
    again = f" after {pod.restarts} restart(s)" if pod.restarts else ""
    reason = f" ({pod.reason})" if pod.reason and pod.reason != "Error" else ""
    lines = "\n".join(pod.message.strip().splitlines()[-MESSAGE_LINES:])[-MESSAGE_LENGTH:]
    return f"{pod.task.name} {code}{again}{reason}" + (f": {lines}" if lines else "")
