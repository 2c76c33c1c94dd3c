"""Causes of jobs that their run policy or a user holds back or has ended: suspended, in a queue of Kueue, waiting
for a gang scheduler; over the deadline, out of retries, or a run that was stopped."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model import Condition
from tfyard.model.names import QUEUE_NAME
from tfyard.overview import attempts, queue_place
from tfyard.overview.cause import Cause, Quote, cut
from tfyard.overview.causes.refusals import BLOCKED, is_of_queue
from tfyard.overview.evidence import Evidence, Unreadable
from tfyard.overview.queue_place import QueuePlace
from tfyard.overview.wording import duration
from tfyard.views.objects import QueuedWorkload
from tfyard.views.pods import TimedCondition

OF_KUBERNETES = ("foregroundDeletion", "orphan")
_STOPPED = {
    "Interrupted": "it was interrupted by Ctrl-C or a signal before it ended",
    "Stopped": "it was stopped by `tfyard stop`; `tfyard resume` continues it",
    "Killed": "the tfyard that ran it was killed, and its tasks with it",
}
"""Phase of a run on this machine -> words."""


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:  # noqa: ARG001
    if not evidence.status.is_finished:
        yield from _held_back(evidence)
    yield from _ended(evidence)


# --- jobs that are held back


def _held_back(evidence: Evidence) -> Iterator[Cause]:
    blocked = evidence.status.condition(BLOCKED)
    if blocked is not None and blocked.status == "True" and is_of_queue(blocked.reason):
        quote = Quote("condition", cut(blocked.message), blocked.last_transition_time)
        yield Cause(kind="gang", sentence=cut(blocked.message), fix=_gang_fix(evidence), evidence=(quote,))
    if place := queue_place.of_job(evidence):
        yield _queued(evidence, place)
    elif queue_place.is_suspended(evidence):
        yield _suspended(evidence)


def _gang_fix(evidence: Evidence) -> str:
    return f"kubectl -n {evidence.namespace} describe podgroup {evidence.name}"


def _suspended(evidence: Evidence) -> Cause:
    condition = evidence.status.condition("Suspended")
    at = condition.last_transition_time if condition else None
    return Cause(
        kind="suspended",
        sentence="it is suspended until it is resumed",
        fix=f"tfyard resume {evidence.name} -n {evidence.namespace}",
        evidence=(Quote("apiserver", "suspend: true", at),),
    )


def _queued(evidence: Evidence, place: QueuePlace) -> Cause:
    queue, workload = place.queue, queue_place.workload_of(evidence)
    if isinstance(evidence.workloads, Unreadable) and evidence.workloads.reason:
        sentence = (
            f"it waits in queue {queue}; only its Workload has the reason, and {evidence.workloads.reason}"
        )
        return Cause(kind="queue", sentence=sentence, evidence=(_label(evidence, queue),))
    if workload is None:
        doubt = "does Kueue run, and is there such a queue?"
        sentence = f"it waits for queue {queue}, and Kueue has not taken it up: {doubt}"
        fix = f"kubectl -n {evidence.namespace} get localqueues"
        quote = _label(evidence, queue, "; no Workload of Kueue")
        return Cause(kind="queue", sentence=sentence, fix=fix, evidence=(quote,))
    refusal = _refusal(workload)
    words = refusal.message if refusal else "admitted, and not started yet"
    return Cause(
        kind="queue",
        sentence=f"it waits in queue {queue}{f' at {place.words}' * bool(place.words)}: {cut(words, 300)}",
        fix=f"kubectl -n {evidence.namespace} describe workload {workload.name}",
        evidence=(Quote("condition", cut(words), refusal.last_transition_time if refusal else None),),
    )


def _label(evidence: Evidence, queue: str, more: str = "") -> Quote:
    return Quote("apiserver", f"label {QUEUE_NAME}: {queue}{more}", evidence.created)


def _refusal(workload: QueuedWorkload) -> TimedCondition | None:
    for type_ in ("QuotaReserved", "Admitted"):
        for condition in workload.status.conditions:
            if condition.type == type_ and condition.status == "False":
                return condition
    return None


# --- jobs that are being deleted


def held_deletion(evidence: Evidence) -> Iterator[Cause]:
    """The cause of a job that is deleted and still there. Kubernetes' own finalizers wait for its objects."""
    others = [name for name in evidence.finalizers if name not in OF_KUBERNETES]
    if evidence.deleted is None:
        return
    quote = Quote("apiserver", f"metadata.finalizers: {', '.join(evidence.finalizers)}", evidence.deleted)
    if not others:
        sentence = f"{evidence.name} is being deleted, and waits until its objects are gone"
        yield Cause(kind="deletion", sentence=sentence, evidence=(quote,), is_symptom=True)
        return
    sentence = (
        f"{evidence.name} is deleted, and the finalizer {others[0]} holds it until its controller is done"
    )
    yield Cause(
        kind="deletion",
        sentence=sentence,
        fix=without_finalizers(evidence.namespace, f"tfjob {evidence.name}"),
        evidence=(quote,),
    )


def without_finalizers(namespace: str, title: str) -> str:
    patch = """--type=merge -p '{"metadata":{"finalizers":null}}'"""
    return f"if that controller no longer runs: kubectl -n {namespace} patch {title} {patch}"


# --- jobs that were ended


def _ended(evidence: Evidence) -> Iterator[Cause]:
    if evidence.phase in _STOPPED:
        yield Cause(kind=evidence.phase.lower(), sentence=_STOPPED[evidence.phase])
    failure, failed = evidence.status.failure, evidence.status.condition("Failed")
    if failure is None:
        if failed is not None and failed.status == "True" and failed.message:
            yield _as_reported(failed)
        return
    quote = Quote("condition", cut(failure.message), evidence.status.completion_time)
    if failure.cause == "DeadlineExceeded":
        yield _deadline(evidence, quote)
    elif failure.cause == "BackoffLimitExceeded":
        yield _retries(evidence, failure.task, quote)


def cut_off(evidence: Evidence) -> Iterator[Cause]:
    """The cause of workers that did not succeed with their job: the first one ended it."""
    sentence, fix = attempts.cut_off(evidence.roles, evidence.stopped)
    if sentence:
        quote = Quote("condition", "Succeeded", evidence.status.completion_time)
        yield Cause(kind="cut-off", sentence=sentence, fix=fix, tasks=evidence.stopped, evidence=(quote,))


def _as_reported(failed: Condition) -> Cause:
    """The cause by the condition of another operator, which reports no more than this."""
    quote = Quote("condition", cut(failed.message), failed.last_transition_time)
    return Cause(kind="failed", sentence=cut(failed.message), evidence=(quote,), is_symptom=True)


def _deadline(evidence: Evidence, quote: Quote) -> Cause:
    seconds = (evidence.spec.get("runPolicy") or {}).get("activeDeadlineSeconds")
    limit = f" of {duration(seconds)}" if isinstance(seconds, int) else ""
    waiting = evidence.status.condition("Waiting")
    waited = f"; it had waited: {cut(waiting.message, 200)}" if waiting and waiting.status == "True" else ""
    fix = "job file: a longer `deadline:`"
    sentence = f"it ran longer than its deadline{limit}{waited}"
    return Cause(kind="deadline", sentence=sentence, fix=fix, evidence=(quote,))


def _retries(evidence: Evidence, task: str, quote: Quote) -> Cause:
    limit = (evidence.spec.get("runPolicy") or {}).get("backoffLimit")
    allowed = f" ({limit} allowed)" if limit is not None else ""
    endings = [ending for ending in evidence.status.endings if not task or ending.task == task][-3:]
    quotes = tuple(
        Quote(
            "condition",
            f"{e.task}, attempt {e.attempt}: {e.reason or 'failed'}, exit code {e.exit_code}",
            e.finished,
        )
        for e in endings
    )
    sentence = f"its tasks failed more often than its retries allow{allowed}"
    return Cause(
        kind="retries",
        sentence=sentence,
        fix="job file: more `retries:`",
        evidence=quotes or (quote,),
        is_symptom=True,
    )
