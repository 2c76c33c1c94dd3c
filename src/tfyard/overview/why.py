"""The answer to `why`: the cause of a job's state in one sentence, the fix, and the evidence.

A wrong cause is worse than none. The apiserver's own refusal is believed first, then a warning that is newer than
the last change, then the states of containers and the conditions, and last the logs.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tfyard.overview.cause import TASKS, TRUST, Cause, Quote, S, cut, named, with_tasks
from tfyard.overview.causes import (
    image_pulls,
    killed,
    leaving,
    no_operator,
    other_containers,
    program,
    refusals,
    run_policy,
    running,
    scheduling,
    start,
    volumes,
)
from tfyard.overview.evidence import NOT_ASKED, End, Evidence, Unreadable
from tfyard.overview.fixes import spoken
from tfyard.overview.wording import duration
from tfyard.views.pods import PodDetails

FINE, FAILED, WAITING, UNKNOWN = 0, 1, 3, 4
"""Exit codes."""
STARTING = timedelta(seconds=30)
"""Time for which a pod without any message counts as starting."""
_NOTED_KINDS = {"CrashLoop": "crash-loop", "Start": "command", "SchedulingGated": "queue"}
"""Reasons of the condition Waiting -> kinds of causes."""
COLLECTIONS = {
    "pods": "pods",
    "events": "events",
    "nodes": "nodes",
    "neighbours": "pods of other namespaces",
    "claims": "claims",
    "classes": "storage classes",
    "leases": "leases",
    "operators": "the operator's Deployment",
    "definitions": "the CRD of TFJobs",
    "slices": "endpoint slices",
    "policies": "network policies",
    "workloads": "Kueue's workloads",
    "pending": "the order of Kueue's queue",
}


class Answer(Struct, frozen=True, kw_only=True):
    job: str
    state: Literal["fine", "failed", "waiting", "unknown"]
    code: int
    sentence: str
    """The first cause, or the state of the job without one."""
    causes: tuple[Cause, ...] = ()
    """The first is the answer; the others are also true."""
    looked_at: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """What could not be read, and why."""


def explain(evidence: Evidence, now: datetime) -> Answer:
    causes = ranked(evidence, list(_found(evidence, now)))
    present = [cause for cause in causes if not cause.is_past]
    code, sentence = _verdict(evidence, present, now)
    states: dict[int, Literal["fine", "failed", "waiting", "unknown"]] = {
        0: "fine",
        1: "failed",
        3: "waiting",
    }
    return Answer(
        job=evidence.name,
        state=states.get(code, "unknown"),
        code=code,
        sentence=sentence,
        causes=tuple(causes),
        looked_at=tuple(_looked_at(evidence)),
        unreadable=tuple(_not_readable(evidence)),
    )


def _found(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    """All causes; of a job that has succeeded, only those of failed tasks that it succeeded without."""
    yield from run_policy.held_deletion(evidence)
    if evidence.status.has("Succeeded"):
        for end in evidence.failures():
            yield from _of_end(evidence, end)
        yield from run_policy.cut_off(evidence)
        return
    for family in (refusals, no_operator, run_policy, running, other_containers):
        yield from family.find(evidence, now)
    for end in evidence.endings():
        yield from _of_end(evidence, end)
    if not evidence.status.is_finished:
        yield from leaving.find(evidence, now)
        yield from _waits(evidence, now)


def _of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    """Causes from the first family that knows this kind of end; the last family knows every end."""
    for family in (killed, start, running, program):
        if causes := list(family.of_end(evidence, end)):
            for cause in causes:
                yield replace(other_containers.of_init_container(end, cause), is_past=end.is_past)
            return


def _waits(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    causes = [cause for pod in evidence.tasks if (cause := _wait_of(evidence, pod, now))]
    causes += [other_containers.of_preparation(evidence, step, now) for step in evidence.preparing]
    yield from causes or _noted(evidence)


def _wait_of(evidence: Evidence, pod: PodDetails, now: datetime) -> Cause | None:
    """The cause of a pod that waits: by events, then by its containers, then by the scheduler."""
    if pod.is_over:
        return None
    for look in (volumes.mounting, start.of_pod, scheduling.of_pod):
        if cause := look(evidence, pod):
            return cause
    return scheduling.unseen(pod, now) or other_containers.preparing(evidence, pod, now)


def _noted(evidence: Evidence) -> Iterator[Cause]:
    """The cause by what the operator wrote into the job, for when pods and events cannot be read."""
    waiting = evidence.status.condition("Waiting")
    if waiting is None or waiting.status != "True":
        return
    task, message = evidence.noted
    quote = Quote("condition", cut(waiting.message), waiting.last_transition_time)
    pod = evidence.pod(task)
    match waiting.reason:
        case "ImagePull":
            cause = image_pulls.of_message(task, message, pod.trainer.image, quote)
        case "Unschedulable":
            cause = scheduling.of_message(evidence, pod, message, quote)
        case "VolumeClaim":
            cause = volumes.of_claim(evidence, pod, message, quote)
        case "Mount":
            cause = volumes.of_message(evidence, pod, message, quote)
        case "Config":
            cause = start.of_config(evidence, pod, message, quote, task)
        case reason:
            kind = _NOTED_KINDS.get(reason, "waiting")
            cause = Cause(
                kind=kind, sentence=f"{TASKS} wait{S} ({reason}): {cut(message)}", evidence=(quote,)
            )
    yield Cause(
        kind=cause.kind, sentence=cause.sentence, fix=cause.fix, tasks=(task,), evidence=cause.evidence
    )


# --- order


def ranked(evidence: Evidence, causes: list[Cause]) -> list[Cause]:
    """Causes, the most certain first, equal ones of several tasks merged. Of a failed job, the task that failed it
    comes first; symptoms come last."""
    merged: dict[tuple[object, ...], Cause] = {}
    for cause in causes:
        key = (cause.kind, cause.sentence, cause.fix, cause.is_past)
        known = merged.get(key)
        merged[key] = replace(known, tasks=(*known.tasks, *cause.tasks)) if known else cause
    culprit = evidence.status.failure.task if evidence.status.failure else ""
    order = sorted(merged.values(), key=lambda cause: _rank(cause, culprit))
    return [
        replace(
            cause,
            sentence=with_tasks(cause.sentence, cause.tasks),
            fix=spoken(cause.fix, evidence.given_as),
        )
        for cause in order
    ]


def _rank(cause: Cause, culprit: str) -> tuple[object, ...]:
    trust = TRUST.index(cause.evidence[0].source) if cause.evidence else len(TRUST)
    at = cause.evidence[0].at if cause.evidence else None
    return cause.is_past, cause.is_symptom, trust, culprit not in cause.tasks, at.timestamp() if at else 0.0


# --- verdict


def _verdict(evidence: Evidence, present: list[Cause], now: datetime) -> tuple[int, str]:
    status = evidence.status
    first = present[0].sentence if present else ""
    if evidence.deleted is not None and first:
        return WAITING, first
    if status.has("Succeeded"):
        words = f", though not all of its tasks: {first}" if first else "; there is nothing to explain"
        return FINE, f"{evidence.name} has succeeded{words}"
    if status.has("Failed"):
        return (FAILED, first) if first else (UNKNOWN, f"{evidence.name} has failed, and nothing tells why")
    if first:
        return WAITING, first
    return _without_cause(evidence, now)


def _without_cause(evidence: Evidence, now: datetime) -> tuple[int, str]:
    size, (up, done) = sum(role.replicas for role in evidence.roles), evidence.counts
    if evidence.is_local:
        return FINE, f"{evidence.name} runs; nothing blocks it"
    if size and up + done >= size:
        since = f" for {_age(evidence, now)}" if evidence.status.start_time else ""
        tasks = "its task" if size == 1 else f"all {size} tasks"
        return FINE, f"{evidence.name} has run{since} with {tasks}; nothing blocks it"
    if _is_starting(evidence, now):
        return WAITING, f"{evidence.name} is starting: {up} of {size} tasks run"
    return UNKNOWN, f"{up} of {size} tasks of {evidence.name} run, and nothing tells what the others wait for"


def _age(evidence: Evidence, now: datetime) -> str:
    start = evidence.status.start_time or now
    return duration((now - start).total_seconds())


def _is_starting(evidence: Evidence, now: datetime) -> bool:
    """Whether the job or one of its pods was created a moment ago."""
    times = [pod.metadata.creation_timestamp for pod in evidence.tasks] or [evidence.created]
    return any(time is not None and now - time < STARTING for time in (*times, evidence.created))


def _looked_at(evidence: Evidence) -> Iterator[str]:
    yield "the record of the run" if evidence.is_local else "the TFJob and its status"
    for field, name in COLLECTIONS.items():
        if not isinstance(getattr(evidence, field), Unreadable):
            yield name
    if evidence.logs:
        yield f"the logs of {named(sorted(evidence.logs))}"


def _not_readable(evidence: Evidence) -> Iterator[str]:
    for field, name in COLLECTIONS.items():
        objects = getattr(evidence, field)
        if isinstance(objects, Unreadable) and objects != NOT_ASKED:
            yield f"{name}: {objects.reason}"
    yield from evidence.unread
