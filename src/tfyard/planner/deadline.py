"""activeDeadlineSeconds, counted from the start (or the last resume). It also ends a job in which nothing
happens, because each decision says when the next pass is due."""

from tfyard.model import Failure

from . import reasons
from .situation import Situation

TO_THE_SECOND = 1
"""Seconds added to the deadline: the start is stored in whole seconds, so the job may have started later, and no
job is stopped early."""


def remaining(situation: Situation) -> float | None:
    limit = situation.job.run_policy.deadline
    if limit is None:
        return None
    return limit + TO_THE_SECOND - (situation.now - situation.start).total_seconds()


def failure(situation: Situation) -> Failure | None:
    left, job = remaining(situation), situation.job
    if left is None or left > 0:
        return None
    text = reasons.DEADLINE_MESSAGE.format(job=job, deadline=job.run_policy.deadline)
    return Failure(cause="DeadlineExceeded", message=text)
