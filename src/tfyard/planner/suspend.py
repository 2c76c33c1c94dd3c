"""A suspended job keeps nothing but its memory: no pods, no Services. What finished stays finished."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model import Action, Delete, Job, Observed, Status

from . import children, conditions, plan, reasons
from .census import Census


def suspended(job: Job, status: Status, now: datetime) -> conditions.Conditions:
    found = status.conditions
    if status.condition(reasons.RUNNING) is not None:
        text = reasons.SUSPENDED_MESSAGE.format(job=job)
        found = conditions.put(found, reasons.RUNNING, reasons.TFJOB_SUSPENDED, text, now, holds=False)
    text = reasons.SUSPENDED_MESSAGE.format(job=job)
    return conditions.put(found, reasons.SUSPENDED, reasons.TFJOB_SUSPENDED, text, now)


def resumed(job: Job, status: Status, now: datetime) -> conditions.Conditions:
    if not status.has(reasons.SUSPENDED):
        return status.conditions
    text = reasons.RESUMED_MESSAGE.format(job=job)
    return conditions.put(status.conditions, reasons.SUSPENDED, reasons.TFJOB_RESUMED, text, now, holds=False)


def put_to_rest(census: Census) -> None:
    """The pods go, and their restarts in place with them: those still count after the resume."""
    for role in census:
        for pod in role.running + role.pending + role.leaving:
            if pod.restarts:
                role.give_up(pod, counts=False)
        role.running, role.pending = [], []


def clear(job: Job, observed: Observed, now: datetime) -> Iterator[Action]:
    yield from plan.departures(observed.pods, now)
    yield from (Delete(kind, name) for kind, name in children.temporary(job, observed.children))
