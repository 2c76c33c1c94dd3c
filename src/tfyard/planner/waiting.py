"""Pods that wait for long: what for, in the words of the scheduler or the kubelet.

Most waits last a few seconds and are nobody's business. One that lasts is reported in the job's status, where it
outlives the events that would explain it, and where nobody needs permissions on pods to read it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from tfyard.model import LAST_WORDS, Pod, Wait

from . import reasons
from .situation import Situation

PATIENCE = 30.0
"""Seconds that a pod waits before that is reported, and that a program which crashed again and again must run
before it counts as running."""
MOUNT = "Mount"
"""Of pods that are being set up: the kubelet says more in events only, about which somebody must ask."""
CRASHING = (
    (reasons.WAITING, "True", reasons.CRASH_LOOP),
    (reasons.RUNNING, "False", reasons.CRASH_LOOP),
)
"""Conditions by which a job says that its tasks crash."""


class Review(Struct, frozen=True, kw_only=True):
    reason: str = ""
    """Of the first pod that has waited too long; empty: there is none."""
    message: str = ""
    crashing: frozenset[str] = frozenset()
    """The uids of pods whose program is reported to crash again and again: they do not count as running."""
    wake_after: float | None = None


class Waiting(NamedTuple):
    pod: Pod
    wait: Wait
    patience: float
    """Seconds until this wait is reported; 0 or less: it is."""

    @property
    def is_long(self) -> bool:
        return self.patience <= 0

    @property
    def is_crash_loop(self) -> bool:
        return self.wait.reason == reasons.CRASH_LOOP

    @property
    def is_told(self) -> bool:
        """Of a pod that waits in silence there is nothing to tell yet."""
        return self.is_long and (bool(self.wait.message) or self.is_crash_loop)


def review(situation: Situation) -> Review:
    waits = [_waiting(situation, pod, pod.wait) for pod in _pods(situation) if pod.wait]
    if _was_crashing(situation) or any(each.is_crash_loop and each.is_long for each in waits):
        waits += _recovering(situation)
    told = sorted((each for each in waits if each.is_told), key=_turn)
    return Review(
        reason=told[0].wait.reason if told else "",
        message=_sentence(told[0]) if told else "",
        crashing=frozenset(each.pod.uid for each in told if each.is_crash_loop),
        wake_after=min((left for each in waits for left in _next_times(each, situation.now)), default=None),
    )


def looks_due(wait: Wait | None, now: datetime) -> int:
    """How often somebody should have asked about a wait by now: after 30 s, and each time that has doubled."""
    waited = (now - wait.since).total_seconds() if wait and wait.since else 0.0
    return int(waited // PATIENCE).bit_length()


def _pods(situation: Situation) -> Iterator[Pod]:
    for role in situation.census:
        yield from (*role.pending, *role.running)


def _was_crashing(situation: Situation) -> bool:
    return any((c.type, c.status, c.reason) in CRASHING for c in situation.before.conditions)


def _recovering(situation: Situation) -> Iterator[Waiting]:
    """A program in a crash loop that runs again is likely to crash again: without patience, the status would
    change twice at each crash."""
    for pod in _pods(situation):
        has_crashed = pod.restarts or pod.run_ended
        if not pod.wait and has_crashed and _until_stable(pod, situation.now) > 0:
            yield _waiting(situation, pod, Wait(reasons.CRASH_LOOP))


def _waiting(situation: Situation, pod: Pod, wait: Wait) -> Waiting:
    """A crash loop began with the first crash that is remembered."""
    since = wait.since
    if wait.reason == reasons.CRASH_LOOP:
        mine = (pod.task.name, pod.attempt + 1)
        ends = (end.finished for end in situation.before.endings if (end.task, end.attempt) == mine)
        since = min((end for end in (*ends, pod.run_ended) if end), default=None)
    return Waiting(pod, wait, PATIENCE - (situation.now - (since or situation.start)).total_seconds())


def _next_times(waiting: Waiting, now: datetime) -> Iterator[float]:
    """Seconds until there is something else to say about it."""
    if not waiting.is_long:
        yield waiting.patience
    elif waiting.wait.reason == MOUNT:
        yield _next_look(waiting.wait, now)
    if waiting.is_told and waiting.pod.running_since:
        yield _until_stable(waiting.pod, now)


def _until_stable(pod: Pod, now: datetime) -> float:
    return PATIENCE - (now - pod.running_since).total_seconds() if pod.running_since else 0.0


def _next_look(wait: Wait, now: datetime) -> float:
    waited = (now - wait.since).total_seconds() if wait.since else 0.0
    return float(PATIENCE * 2 ** looks_due(wait, now) - waited)


def _turn(told: Waiting) -> tuple[bool, bool, str, int]:
    """Crashes last: often a program crashes because another task, which waits, is not there. Those that run again
    after those that wait, and then by task: so pods that stay as they are change nothing, in whatever order."""
    task = told.pod.task
    return told.is_crash_loop, told.pod.wait is None, task.role, task.index


def _sentence(told: Waiting) -> str:
    """In one line. The kubelet's words about a crash loop name its back-off; the program's say more."""
    words = _crash(told.pod) if told.is_crash_loop else told.wait.message
    text = f"{told.pod.task.name}: {' '.join(words.split())}"
    return text if len(text) <= LAST_WORDS else f"{text[: LAST_WORDS - 1]}…"


def _crash(pod: Pod) -> str:
    code = f"exits with code {pod.exit_code}" if pod.exit_code is not None else "fails"
    reason = f" ({pod.reason})" if pod.reason not in ("", "Error") else ""
    lines = pod.message.strip().splitlines()
    return f"{code}{reason} again and again" + (f": {lines[-1]}" if lines else "")
