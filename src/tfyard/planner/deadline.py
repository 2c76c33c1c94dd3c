"""activeDeadlineSeconds, counted from the start (or the last resume). It fires on a quiet job too:
the decision says when to look again."""

from datetime import datetime, timedelta

from tfyard.model import Failure, Job

from . import reasons


def remaining(job: Job, start: datetime | None, now: datetime) -> float | None:
    limit = job.run_policy.deadline
    if limit is None or start is None:
        return None
    return (start + timedelta(seconds=limit) - now).total_seconds()


def failure(job: Job, start: datetime | None, now: datetime) -> Failure | None:
    left = remaining(job, start, now)
    if left is None or left > 0:
        return None
    text = reasons.DEADLINE_MESSAGE.format(job=job, deadline=job.run_policy.deadline)
    return Failure(cause="DeadlineExceeded", message=text)
