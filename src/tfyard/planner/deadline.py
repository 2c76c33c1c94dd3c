"""activeDeadlineSeconds, counted from the start (or the last resume). It fires on a quiet job too:
the decision says when to look again."""

from datetime import datetime, timedelta

from tfyard.model import Failure, Job

from . import reasons

TO_THE_SECOND = 1
"""The start is stored in whole seconds, so the job may have begun as much later; nobody is stopped too early."""


def remaining(job: Job, start: datetime | None, now: datetime) -> float | None:
    limit = job.run_policy.deadline
    if limit is None or start is None:
        return None
    return (start + timedelta(seconds=limit + TO_THE_SECOND) - now).total_seconds()


def failure(job: Job, start: datetime | None, now: datetime) -> Failure | None:
    left = remaining(job, start, now)
    if left is None or left > 0:
        return None
    text = reasons.DEADLINE_MESSAGE.format(job=job, deadline=job.run_policy.deadline)
    return Failure(cause="DeadlineExceeded", message=text)
