"""Pods that wait for a long time, and the reason by the scheduler or the kubelet.

Most waits last a few seconds and are not reported. A longer one is reported in the job's status, which outlives
the events that would explain it and can be read without permissions on pods.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from tfyard.model import LAST_WORDS, Pod, Wait, shortened

from . import reasons
from .situation import Situation

PATIENCE = 30.0
"""Seconds until the wait of a pod is reported, and that a program in a crash loop must run before it counts as
running."""
MOUNT = "Mount"
"""Reason of waits for volumes: the kubelet gives details only in events, which must be listed."""
CRASHING = (
    (reasons.WAITING, "True", reasons.CRASH_LOOP),
    (reasons.RUNNING, "False", reasons.CRASH_LOOP),
)
"""Conditions of a job whose tasks crash (type, status, reason)."""


class WaitingReview(Struct, frozen=True, kw_only=True):
    reason: str = ""
    """Reason of the first pod that has waited too long; empty: there is none."""
    message: str = ""
    crashing: frozenset[str] = frozenset()
    """The uids of pods whose program is reported to crash again and again: they do not count as running."""
    wake_after: float | None = None


class WaitingPod(NamedTuple):
    pod: Pod
    wait: Wait
    patience: float
    """Seconds until this wait is reported; 0 or less: it is reported."""

    @property
    def is_long(self) -> bool:
        return self.patience <= 0

    @property
    def is_crash_loop(self) -> bool:
        return self.wait.reason == reasons.CRASH_LOOP

    @property
    def is_told(self) -> bool:
        """Whether the wait is reported. A wait without a message has nothing to report yet."""
        return self.is_long and (bool(self.wait.message) or self.is_crash_loop)


def review(situation: Situation) -> WaitingReview:
    waits = [_waiting(situation, pod, pod.wait) for pod in _pods(situation) if pod.wait]
    if _was_crashing(situation) or any(each.is_crash_loop and each.is_long for each in waits):
        waits += _recovering(situation)
    reported = sorted((each for each in waits if each.is_told), key=_turn)
    return WaitingReview(
        reason=reported[0].wait.reason if reported else "",
        message=_sentence(reported[0]) if reported else "",
        crashing=frozenset(each.pod.uid for each in reported if each.is_crash_loop),
        wake_after=min((left for each in waits for left in _next_times(each, situation.now)), default=None),
    )


def looks_due(wait: Wait | None, now: datetime) -> int:
    """How often events of a waiting pod should have been listed: after 30 s, then at doubled intervals."""
    waited = (now - wait.since).total_seconds() if wait and wait.since else 0.0
    return int(max(0.0, waited) // PATIENCE).bit_length()


def _pods(situation: Situation) -> Iterator[Pod]:
    for role in situation.census:
        yield from (*role.pending, *role.running)


def _was_crashing(situation: Situation) -> bool:
    return any((c.type, c.status, c.reason) in CRASHING for c in situation.before.conditions)


def _recovering(situation: Situation) -> Iterator[WaitingPod]:
    """Pods in a crash loop whose program runs again. It is likely to crash again: if it counted as running at
    once, the status would change twice at each crash."""
    for pod in _pods(situation):
        has_crashed = pod.restarts or pod.run_ended
        if not pod.wait and has_crashed and _until_stable(pod, situation.now) > 0:
            yield _waiting(situation, pod, Wait(reasons.CRASH_LOOP))


def _waiting(situation: Situation, pod: Pod, wait: Wait) -> WaitingPod:
    """The wait with its remaining patience. A crash loop began with the first crash in the status."""
    since = wait.since
    if wait.failed:
        return WaitingPod(pod, wait, 0.0)
    if wait.reason == reasons.CRASH_LOOP:
        mine = (pod.task.name, pod.attempt + 1)
        ends = (end.finished for end in situation.before.endings if (end.task, end.attempt) == mine)
        since = min((end for end in (*ends, pod.run_ended) if end), default=None)
    return WaitingPod(pod, wait, PATIENCE - (situation.now - (since or situation.start)).total_seconds())


def _next_times(waiting: WaitingPod, now: datetime) -> Iterator[float]:
    """Seconds until the report about a wait may change."""
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


def _turn(waiting: WaitingPod) -> tuple[bool, bool, str, int]:
    """Order of waits. Crashes come last: often a program crashes because another task waits. Programs that run
    again come after those that wait. The task makes the order independent of the order of pods."""
    task = waiting.pod.task
    return waiting.is_crash_loop, waiting.pod.wait is None, task.role, task.index


def _sentence(waiting: WaitingPod) -> str:
    """The report in one line. About a crash loop, the program's own message says more than the kubelet's."""
    words = _crash(waiting.pod) if waiting.is_crash_loop else waiting.wait.message
    return shortened(f"{waiting.pod.task.name}: {' '.join(words.split())}", LAST_WORDS)


def _crash(pod: Pod) -> str:
    code = f"exits with code {pod.exit_code}" if pod.exit_code is not None else "fails"
    reason = f" ({pod.reason})" if pod.reason not in ("", "Error") else ""
    lines = pod.message.strip().splitlines()
    return f"{code}{reason} again and again" + (f": {lines[-1]}" if lines else "")
