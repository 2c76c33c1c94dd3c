"""What to do about a pod that failed or was taken away.

A program's own failure is judged by its role's restart policy. A pod that the cluster took away (drain,
preemption, eviction, a lost node, `kubectl delete`) says nothing about the program: it is replaced under
every policy, as Kubernetes' own Job does, and costs no retry.
"""

from msgspec import Struct, field

from tfyard.model import WORKER, Failure, Job, Pod

from . import reasons
from .census import Census, RoleCensus
from .exit_codes import may_restart
from .leaders import leaders, leading_role

MESSAGE_LINES = 12
MESSAGE_LENGTH = 1024


class Verdict(Struct, kw_only=True):
    restarted: list[Pod] = field(default_factory=list)
    replaced: list[Pod] = field(default_factory=list)
    fatal: list[Pod] = field(default_factory=list)


def judge(job: Job, census: Census) -> Verdict:
    """Sort out every unjudged failure, and note in the census what must be remembered of it."""
    verdict = Verdict()
    for role in census:
        for pod in role.failed:
            _judge_pod(job, role, pod, verdict)
        for pod in role.leaving:
            _see_off(role, pod, verdict)
        given_up = {pod.uid for pod in role.stale}
        role.failed = [pod for pod in role.failed if pod.uid not in given_up]
        role.leaving = [pod for pod in role.leaving if pod.uid not in given_up]
    return verdict


def revoke(census: Census, verdict: Verdict) -> None:
    """The job has ended: nobody is run again, and who failed is shown as failed."""
    for pod in verdict.restarted:
        census.roles[pod.task.role].take_back(pod)


def _judge_pod(job: Job, role: RoleCensus, pod: Pod, verdict: Verdict) -> None:
    if pod.disrupted:
        role.give_up(pod, counts=False)
        verdict.replaced.append(pod)
    elif may_restart(role.role.restart, pod.exit_code):
        role.give_up(pod, counts=True)
        verdict.restarted.append(pod)
    elif not is_tolerated(job, pod):
        verdict.fatal.append(pod)


def _see_off(role: RoleCensus, pod: Pod, verdict: Verdict) -> None:
    """Given up at first sight: its restarts in place leave with it, and a program that saves its work and
    exits 0 when it is told to go has not finished."""
    if pod.phase != "Pending" or pod.restarts:
        role.give_up(pod, counts=False)
    if pod.phase != "Pending":
        verdict.replaced.append(pod)


def is_tolerated(job: Job, pod: Pod) -> bool:
    """Whose permanent failure a job survives: elastic workers, and in v1alpha1 everyone but the chief."""
    if job.dynamic_workers and pod.task.role == WORKER:
        return True
    if job.fails_with == "chief":
        role = leading_role(job)
        return role is not None and (pod.task.role != role.name or pod.task.index not in leaders(job))
    return False


def failure(job: Job, census: Census, verdict: Verdict) -> Failure | None:
    """Why the job cannot go on, if it cannot."""
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
    """One task's end in words: its exit code, the reason, and the last lines it wrote."""
    code = f"exited with code {pod.exit_code}" if pod.exit_code is not None else "failed"
    again = f" after {pod.restarts} restart(s)" if pod.restarts else ""
    reason = f" ({pod.reason})" if pod.reason and pod.reason != "Error" else ""
    lines = "\n".join(pod.message.strip().splitlines()[-MESSAGE_LINES:])[-MESSAGE_LENGTH:]
    return f"{pod.task.name} {code}{again}{reason}" + (f": {lines}" if lines else "")
