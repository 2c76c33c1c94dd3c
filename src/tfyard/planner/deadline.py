"""activeDeadlineSeconds, counted from the start (or the last resume). It also ends a job in which nothing
happens: the decision says when to look again."""

from datetime import timedelta

from tfyard.model import Failure

from . import reasons
from .situation import Situation

TO_THE_SECOND = 1
"""The start is stored in whole seconds, so the job may have started that much later; nobody is stopped early."""


def remaining(situation: Situation) -> float | None:
    limit = situation.job.run_policy.deadline
    if limit is None:
        return None
    return (situation.start + timedelta(seconds=limit + TO_THE_SECOND) - situation.now).total_seconds()


def failure(situation: Situation) -> Failure | None:
    left, job = remaining(situation), situation.job
    if left is None or left > 0:
        return None
    text = reasons.DEADLINE_MESSAGE.format(job=job, deadline=job.run_policy.deadline)
    return Failure(cause="DeadlineExceeded", message=text)
