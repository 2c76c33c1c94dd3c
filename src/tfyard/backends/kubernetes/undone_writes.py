"""Writes that must wait, and why: those that are undone wait longer each time, those that the server postpones as
long as it asks for. The job says so.

An admission policy or a webhook may change the labels by which the operator finds its objects, or remove the
annotation that has the number of a pod's attempt. Such a pod is not seen, or reads as another one, which would be
deleted and created again for ever. Another client may delete whatever is created, or change it back.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tfyard.kube import Transient
from tfyard.model import Action, Amend, Create, Obstacle
from tfyard.model.backoff import Backoff
from tfyard.model.names import ATTEMPT, JOB_NAME, OPERATOR_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.views.metadata import ObjectMeta

LABELS_MISSING, ATTEMPT_LOST, UNDONE = "LabelsMissing", "AnnotationsRemoved", "ChangedByOthers"
RETRY_AFTER = "RetryAfter"
IDENTIFYING_LABELS = (OPERATOR_NAME, JOB_NAME, REPLICA_TYPE, REPLICA_INDEX)
"""The labels by which an object is watched and found, and a pod belongs to a task."""


class WaitingWrite(Obstacle, frozen=True):
    """The obstacle of a write that must not be repeated at once. It speaks for all objects of its kind."""

    verb: str
    kind: str

    def concerns(self, action: Action) -> bool:
        return (_verb(action), getattr(action, "kind", "")) == (self.verb, self.kind)


class ChangedObject(WaitingWrite, frozen=True):
    """The obstacle of an object that came back from its create with other labels or annotations than it was sent
    with."""

    restarts_only: bool = False
    """Whether first attempts are not concerned: without the annotation, a pod reads as one."""

    def concerns(self, action: Action) -> bool:
        return super().concerns(action) and (is_restart(action) or not self.restarts_only)


class PostponedWrite(WaitingWrite, frozen=True):
    """The obstacle of a write that the server, or a webhook of the namespace, answered with Retry-After."""

    seconds: float


class WriteWait(NamedTuple):
    obstacle: WaitingWrite
    backoff: Backoff
    until: float


class Write(NamedTuple):
    content: object
    """What makes it the same write: the attempt of a pod, or the reason of a patch; without one, the patch."""
    made: str
    """Uid of the object that it created; empty: it created none."""
    times: int
    """How often it was done in a row."""
    last: float


class UndoneWrites:
    def __init__(self, backoff: Backoff, clock: Callable[[], float] = time.monotonic) -> None:
        self._backoff, self._clock = backoff, clock
        self._waits: dict[str, dict[tuple[str, str, str], WriteWait]] = {}
        """Uid of a job -> (reason, verb, kind) -> the wait of all such writes."""
        self._writes: dict[str, dict[str, Write]] = {}
        """Uid of a job -> its recent writes, the oldest first."""

    def __len__(self) -> int:
        return len(self._waits) + len(self._writes)

    def why_wait(self, uid: str, action: Action) -> Obstacle | None:
        """Why an action must wait; None if it need not. The same write may be repeated once without a wait: a user
        may have deleted the object."""
        for obstacle in self.waits(uid):
            if obstacle.concerns(action):
                return obstacle
        write = self._writes.get(uid, {}).get(_key(action))
        if write is None or write.content != _content(action):
            return None
        due = write.last + replace(self._backoff, failures=write.times - 1).delay()
        return _undone(action) if self._clock() < due else None

    def waits(self, uid: str) -> list[WaitingWrite]:
        """Why writes of a job must wait, also while there is nothing to write."""
        now = self._clock()
        return [each.obstacle for each in self._waits.get(uid, {}).values() if now < each.until]

    def due_in(self, uid: str) -> float | None:
        """Seconds until the first of these waits is over; None if there is none."""
        now = self._clock()
        ends = (each.until - now for each in self._waits.get(uid, {}).values() if now < each.until)
        return min(ends, default=None)

    def review(self, uid: str, done: Sequence[tuple[Action, str]], met: Iterable[WaitingWrite]) -> None:
        """Notes the result of an attempt: what was done, with the uids of what was created, and what must wait,
        the first of it first."""
        waits, again = self._waits.pop(uid, {}), dict[tuple[str, str, str], WriteWait]()
        for each in met:
            key = (each.reason, each.verb, each.kind)
            again.setdefault(key, self._next(each, waits.get(key)))
        kept = [action for action, _ in done]
        waits = {key: each for key, each in waits.items() if not any(map(each.obstacle.concerns, kept))}
        if waits or again:
            self._waits[uid] = waits | again
        self._count(uid, [each for each in done if isinstance(each[0], Create | Amend)])

    def _next(self, obstacle: WaitingWrite, before: WriteWait | None) -> WriteWait:
        backoff = (before.backoff if before else self._backoff).next()
        seconds = obstacle.seconds if isinstance(obstacle, PostponedWrite) else backoff.delay()
        return WriteWait(obstacle, backoff, self._clock() + seconds)

    def forget(self, uid: str) -> None:
        self._waits.pop(uid, None)
        self._writes.pop(uid, None)

    def _count(self, uid: str, written: Iterable[tuple[Action, str]]) -> None:
        """Counts writes in a row, and forgets those that lasted. A create that met its own object is none."""
        writes, now = self._writes.pop(uid, {}), self._clock()
        while writes and next(iter(writes.values())).last < now - 2 * self._backoff.longest:
            del writes[next(iter(writes))]
        for action, made in written:
            known, content = writes.pop(_key(action), None), _content(action)
            times = known.times if known is not None and known.content == content else 0
            is_new = known is None or not made or known.made != made
            writes[_key(action)] = Write(content, made, times + is_new, now)
        if writes:
            self._writes[uid] = writes


def check(action: Create, meta: ObjectMeta) -> ChangedObject | None:
    """The obstacle of an object that has come back without what the operator finds it by."""
    lost = [_change(key, value, meta) for key, value in _labels(action) if meta.labels.get(key) != value]
    subject = f"{action.kind.lower()} {action.name}"
    if lost:
        text = f"an admission policy or webhook changed the labels of {subject}: {', '.join(lost)}"
        text = f"{text}; it must keep them, because the operator finds it by them"
        return ChangedObject(LABELS_MISSING, text, "create", action.kind)
    if is_restart(action) and meta.annotations.get(ATTEMPT) != _attempt(action):
        text = f"{subject} lost its annotation {ATTEMPT} when it was created"
        text = f"{text}: an admission policy or webhook removes it, and must keep it"
        return ChangedObject(ATTEMPT_LOST, text, "create", action.kind, restarts_only=True)
    return None


def postponed(action: Action, problem: Transient) -> PostponedWrite | None:
    """The obstacle of a write that the server asks to send later; None if it does not."""
    if not problem.retry_after:
        return None
    verb, kind, name = _verb(action), getattr(action, "kind", ""), getattr(action, "name", "")
    subject = f"{kind.lower()} {name}" if kind else "the job"
    text = f"cannot {verb} {subject}: {problem}; the next try is in {problem.retry_after:g} s, as the server asks"
    return PostponedWrite(RETRY_AFTER, text, verb, kind, problem.retry_after)


def missing_label(action: Create, meta: ObjectMeta) -> Obstacle | None:
    """The obstacle of our own object that has lost labels since it was created: its end would not be seen."""
    for key, value in _labels(action):
        if meta.labels.get(key) != value:
            kind = action.kind.lower()
            lost = (
                f"{kind} {action.name} no longer has the label {key}={value}, by which the operator finds it"
            )
            return Obstacle(LABELS_MISSING, f"{lost}; put it back, or delete the {kind}")
    return None


def is_restart(action: Action) -> bool:
    return isinstance(action, Create) and _attempt(action) not in ("", "0")


def _labels(action: Create) -> list[tuple[str, str]]:
    """The labels of an object that it must keep."""
    labels = action.manifest["metadata"].get("labels") or {}
    return [(key, labels[key]) for key in IDENTIFYING_LABELS if key in labels]


def _change(key: str, value: str, meta: ObjectMeta) -> str:
    return f"{key}={value} became {meta.labels[key]}" if key in meta.labels else f"{key}={value} was removed"


def _attempt(action: Create) -> str:
    annotations = action.manifest["metadata"].get("annotations") or {}
    return str(annotations.get(ATTEMPT, "")) if action.kind == "Pod" else ""


def _verb(action: Action) -> str:
    return {Create: "create", Amend: "patch"}.get(type(action), "delete")


def _key(action: Action) -> str:
    if not isinstance(action, Create | Amend):
        return ""
    return f"{type(action).__name__} {action.kind} {action.name}"


def _content(action: Action) -> object:
    """What makes two writes of an object the same. A repair is one, whatever was edited."""
    if isinstance(action, Amend):
        return action.reason or action.patch
    return _attempt(action) if isinstance(action, Create) else None


def _undone(action: Action) -> Obstacle:
    subject = _key(action).partition(" ")[2].lower()
    what = "is deleted whenever it is created" if isinstance(action, Create) else "is changed back each time"
    return Obstacle(UNDONE, f"{subject} {what}: another client does that, and must leave it alone")
