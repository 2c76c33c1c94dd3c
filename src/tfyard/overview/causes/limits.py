"""A person ended the job: by a limit, which is its deadline or the number of restarts, or by stopping its run."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model import Condition
from tfyard.overview.cause import Cause, Quote, cut
from tfyard.overview.evidence import Evidence
from tfyard.overview.wording import duration

_STOPPED = {
    "Interrupted": "somebody stopped it, by Ctrl-C or a signal, before it ended",
    "Stopped": "somebody stopped it by `tfyard stop`; `tfyard resume` goes on",
    "Killed": "the tfyard that ran it was killed, and its tasks with it",
}
"""Phase of a run on this machine -> what happened."""


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:  # noqa: ARG001
    if evidence.phase in _STOPPED:
        yield Cause(kind=evidence.phase.lower(), sentence=_STOPPED[evidence.phase])
    failure, failed = evidence.status.failure, evidence.status.condition("Failed")
    if failure is None:
        if failed is not None and failed.status == "True" and failed.message:
            yield _as_told(failed)
        return
    quote = Quote("condition", cut(failure.message), evidence.status.completion_time)
    if failure.cause == "DeadlineExceeded":
        yield _deadline(evidence, quote)
    elif failure.cause == "BackoffLimitExceeded":
        yield _retries(evidence, failure.task, quote)


def _as_told(failed: Condition) -> Cause:
    """By another operator, which says no more than this."""
    quote = Quote("condition", cut(failed.message), failed.last_transition_time)
    return Cause(kind="failed", sentence=cut(failed.message), evidence=(quote,), is_symptom=True)


def _deadline(evidence: Evidence, quote: Quote) -> Cause:
    seconds = (evidence.spec.get("runPolicy") or {}).get("activeDeadlineSeconds")
    limit = f" of {duration(seconds)}" if isinstance(seconds, int) else ""
    waiting = evidence.status.condition("Waiting")
    waited = f"; it had waited: {cut(waiting.message, 200)}" if waiting and waiting.status == "True" else ""
    fix = "--deadline" if evidence.is_local else "job file: a longer `deadline:`"
    sentence = f"it ran longer than its deadline{limit}{waited}"
    return Cause(kind="deadline", sentence=sentence, fix=fix, evidence=(quote,))


def _retries(evidence: Evidence, task: str, quote: Quote) -> Cause:
    limit = (evidence.spec.get("runPolicy") or {}).get("backoffLimit")
    allowed = f" ({limit} allowed)" if limit is not None else ""
    endings = [ending for ending in evidence.status.endings if not task or ending.task == task][-3:]
    said = tuple(
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
        evidence=said or (quote,),
        is_symptom=True,
    )
