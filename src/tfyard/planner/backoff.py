"""Back-off of a task whose pods fail, or are taken away, one after the other.

A crash loop without a wait would create a pod every few seconds, for ever. The first new attempt is immediate,
because most tasks fail or are preempted once. The wait is stored in the status, so that it survives a restart of
the operator; suspending the job ends it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from tfyard.model import Pod, TaskBackoff

from .census import RoleCensus
from .situation import Situation, whole_seconds

NAMED_TASKS = 3
"""Maximum number of waiting tasks that a message names; the others are counted."""


def after(situation: Situation, pod: Pod) -> TaskBackoff | None:
    """The wait of the task whose pod is given up now; None: the next attempt is immediate."""
    failures = _in_a_row(situation, pod)
    seconds = _seconds(situation, failures)
    if not seconds:
        return None
    until = whole_seconds(situation.now + timedelta(seconds=seconds, microseconds=999_999))
    return TaskBackoff(failures=failures, until=until)


def remaining(role: RoleCensus, index: int, now: datetime) -> float:
    """Seconds until the task may have its next pod."""
    backoff = role.backoff.get(index)
    return (backoff.until - now).total_seconds() if backoff else 0.0


def waits(situation: Situation) -> Iterator[float]:
    """Seconds until each task that needs a pod may have one."""
    for role in situation.census:
        yield from (remaining(role, index, situation.now) for index in role.absent)


def explain(situation: Situation, pod: Pod, backoff: TaskBackoff, cause: str) -> str:
    """A sentence that says which attempt waits, how long, and why. Attempts are shown counted from 1."""
    seconds = _seconds(situation, backoff.failures)
    return f"{pod.task.name} waits {seconds:g} s before attempt {pod.attempt + 2}: {cause}"


def summarize(texts: tuple[str, ...]) -> str:
    more = len(texts) - NAMED_TASKS
    return "; ".join((*texts[:NAMED_TASKS], *([f"{more} more wait"] if more > 0 else [])))


def _seconds(situation: Situation, failures: int) -> float:
    return replace(situation.site.backoff, failures=failures - 1).delay()


def _in_a_row(situation: Situation, pod: Pod) -> int:
    """Number of attempts that failed in a row, this one included. An attempt that ran as long as the longest wait
    starts a new row. Every attempt but the first follows one that was given up, so two in a row are not stored."""
    ran = (situation.now - pod.started).total_seconds() if pod.started else 0.0
    if not pod.attempt or ran >= situation.site.backoff.longest:
        return 1
    known = situation.census.roles[pod.task.role].backoff.get(pod.task.index)
    return known.failures + 1 if known else 2
