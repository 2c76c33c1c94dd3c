"""A suspended job keeps nothing but its memory: no pods, no Services. What finished stays finished."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model import Action, Delete, Job, Observed, Status

from . import children, conditions, gang, plan, reasons
from .census import Census
from .restart import is_tolerated


def suspended(job: Job, status: Status, now: datetime) -> conditions.Conditions:
    found, text = status.conditions, reasons.SUSPENDED_MESSAGE.format(job=job)
    for type in (reasons.RUNNING, reasons.RESTARTING):
        if status.has(type):
            found = conditions.put(found, type, reasons.TFJOB_SUSPENDED, text, now, holds=False)
    if status.has(reasons.BLOCKED):
        free = reasons.UNBLOCKED_MESSAGE
        found = conditions.put(found, reasons.BLOCKED, reasons.UNBLOCKED, free, now, holds=False)
    return conditions.put(found, reasons.SUSPENDED, reasons.TFJOB_SUSPENDED, text, now)


def resumed(job: Job, status: Status, now: datetime) -> conditions.Conditions:
    if not status.has(reasons.SUSPENDED):
        return status.conditions
    text = reasons.RESUMED_MESSAGE.format(job=job)
    return conditions.put(status.conditions, reasons.SUSPENDED, reasons.TFJOB_RESUMED, text, now, holds=False)


def put_to_rest(job: Job, census: Census) -> None:
    """The pods go, and with them what must still count after the resume: failures that nobody has judged,
    and restarts in place. Who merely leaves is not noted: that would be a line for every task."""
    for role in census:
        for pod in role.failed:
            role.give_up(pod, counts=not pod.disrupted and not is_tolerated(job, pod))
        for pod in role.running + role.pending + role.leaving:
            if pod.restarts:
                role.give_up(pod, counts=False)
        role.running, role.pending, role.failed, role.leaving = [], [], [], []


def see_off(census: Census) -> None:
    """Who still leaves at the resume was sent away by the suspension: however it ends, that is no end of
    its task, and nobody took it from us."""
    for role in census:
        for pod in role.leaving:
            role.give_up(pod, counts=False)
        role.leaving = []


def clear(job: Job, observed: Observed, now: datetime) -> Iterator[Action]:
    yield from plan.departures(observed.pods, now)
    yield from gang.dissolve(job, observed)
    yield from (Delete(kind, name) for kind, name in children.temporary(job, observed.children))
