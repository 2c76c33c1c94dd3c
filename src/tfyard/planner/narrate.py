"""Events: what is reported about a job, with upstream's reasons, aggregated so that a large job stays readable."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

from tfyard.model import Action, Create, Delete, DeleteJob, Event, Job, Pod, Status
from tfyard.model.names import DELETED_BY_TTL

from . import gang, reasons
from .job_setup import Setup
from .restart import Verdict, describe, explain

Level = Literal["Normal", "Warning"]

NAMED_PODS = 3
"""Maximum number of pods that an event names; more are counted."""


def tell(job: Job, before: Status, after: Status, verdict: Verdict) -> Iterator[Event]:
    """Events about a change of the status; they are written only after the status itself."""
    yield from _exits(job, chain(verdict.fatal, verdict.restarted, verdict.lost))
    yield from _evictions(verdict.restarted)
    if after.has(reasons.RESTARTING) and verdict.is_restart:
        yield Event("Warning", reasons.TFJOB_RESTARTING, explain(job, verdict))
    if _changed(before, after, reasons.BLOCKED) and not after.is_finished:
        yield _event("Warning" if after.has(reasons.BLOCKED) else "Normal", after, reasons.BLOCKED)
    if _changed(before, after, reasons.STALLED) and not (after.is_finished or verdict.is_restart):
        yield _event("Normal" if _goes_on(after) else "Warning", after, reasons.STALLED)
    if _changed(before, after, reasons.SUSPENDED):
        yield _event("Normal", after, reasons.SUSPENDED)
    yield from tell_end(after)


def tell_end(status: Status) -> Iterator[Event]:
    """The event about the end of a job; none if it has not ended."""
    if status.has(reasons.SUCCEEDED):
        yield _event("Normal", status, reasons.SUCCEEDED)
    if status.has(reasons.FAILED):
        yield _event("Warning", status, reasons.FAILED)


def warn(job: Job, setup: Setup) -> Iterator[Event]:
    """Warnings about templates that contradict the job, reported once, at the start."""
    for role in job.roles:
        if role.overruled_restart:
            text = reasons.TEMPLATE_RESTART_POLICY_MESSAGE
            yield Event("Warning", reasons.TEMPLATE_RESTART_POLICY, f"{text} ({role.name})")
    yield from gang.warnings(job, setup)


def narrate(actions: Iterable[Action]) -> Iterator[Event]:
    """Events about completed actions: `Created 64 pods` instead of 64 events, with their Service."""
    done: dict[str, dict[str, list[str]]] = {"Create": defaultdict(list), "Delete": defaultdict(list)}
    amended: dict[tuple[str, str], list[str]] = defaultdict(list)
    for action in actions:
        if isinstance(action, DeleteJob):
            yield Event("Normal", DELETED_BY_TTL, "Deleted job: its TTL has expired")
        elif isinstance(action, Create | Delete):
            done["Create" if isinstance(action, Create) else "Delete"][action.kind].append(action.name)
        elif action.reason:
            amended[action.reason, action.kind].append(action.name)
    for (reason, kind), names in amended.items():
        text = reasons.AMENDED_MESSAGES[reason].format(objects=_summary(kind, names))
        yield Event("Normal", reason, text)
    for verb, kinds in done.items():
        if kinds:
            leading = "Pod" if "Pod" in kinds else next(iter(kinds))
            order = sorted(kinds, key=lambda kind: kind != leading)
            text = "; ".join(_summary(kind, kinds[kind]) for kind in order)
            yield Event("Normal", f"Successful{verb}{leading}", f"{verb}d {text}")


def _summary(kind: str, names: list[str]) -> str:
    if len(names) > NAMED_PODS:
        return f"{len(names)} {kind.lower()}s: {names[0]} … {names[-1]}"
    return f"{kind.lower()}: {', '.join(names)}"


def _exits(job: Job, pods: Iterable[Pod]) -> Iterator[Event]:
    """Events about the exit codes of failed pods; finished tasks are in the counts already."""
    by_code: dict[int, list[str]] = defaultdict(list)
    for pod in pods:
        if pod.exit_code is not None:
            by_code[pod.exit_code].append(pod.name)
    for code, names in sorted(by_code.items()):
        many = f"{len(names)} pods exited with code {code}: {names[0]} … {names[-1]}"
        few = ", ".join(f"Pod: {job.namespace}.{name} exited with code {code}" for name in names)
        yield Event("Normal", reasons.EXITED_WITH_CODE, many if len(names) > NAMED_PODS else few)


def _evictions(pods: Iterable[Pod]) -> Iterator[Event]:
    """Warnings that say why a kubelet evicted pods; if the job fails, its failure says it."""
    evicted = [pod for pod in pods if pod.reason == reasons.EVICTED]
    yield from (Event("Warning", reasons.EVICTED, describe(pod)) for pod in evicted[:NAMED_PODS])


def _goes_on(status: Status) -> bool:
    stall = status.condition(reasons.STALLED)
    return stall is not None and stall.reason == reasons.GOES_ON


def _changed(before: Status, after: Status, type: str) -> bool:
    new = after.condition(type)
    return new is not None and new != before.condition(type)


def _event(level: Level, status: Status, type: str) -> Event:
    condition = status.condition(type)
    assert condition is not None
    return Event(level, condition.reason, condition.message)
