"""Pods that wait for long: what for, in the words of the scheduler or the kubelet.

Most waits last a few seconds and are nobody's business. One that lasts is told in the job's status, where it
outlives the events that would explain it, and where nobody needs permissions on pods to read it.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from tfyard.model import LAST_WORDS, Pod, Wait

from . import reasons
from .situation import Situation

PATIENCE = 30.0
"""Seconds that a pod waits before that is told, and that a program which crashed again and again must run before
it counts as running."""
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
    """The uids of pods whose program crashes again and again, if that is told: they do not count as running."""
    wake_after: float | None = None


def review(situation: Situation) -> Review:
    waits = [(pod, wait, _patience(situation, pod, wait)) for pod, wait in _waits(situation)]
    if _was_crashing(situation) or any(
        wait.reason == reasons.CRASH_LOOP and left <= 0 for _, wait, left in waits
    ):
        waits += [(pod, wait, _patience(situation, pod, wait)) for pod, wait in _recovering(situation)]
    if not waits:
        return Review()
    long = [(pod, wait) for pod, wait, left in waits if left <= 0]
    told = sorted((each for each in long if _has_words(each[1])), key=_turn)
    later = [left for _, _, left in waits if left > 0]
    later += [_next_look(wait, situation.now) for _, wait in long if wait.reason == MOUNT]
    later += [_until_stable(pod, situation.now) for pod, _ in told if pod.running_since]
    first = told[0] if told else None
    return Review(
        reason=first[1].reason if first else "",
        message=_sentence(*first) if first else "",
        crashing=frozenset(pod.uid for pod, wait in told if wait.reason == reasons.CRASH_LOOP),
        wake_after=min(later, default=None),
    )


def looks_due(wait: Wait | None, now: datetime) -> int:
    """How often somebody should have asked about a wait by now: after 30 s, and each time that has doubled."""
    waited = (now - wait.since).total_seconds() if wait and wait.since else 0.0
    return int(waited // PATIENCE).bit_length()


def _waits(situation: Situation) -> Iterator[tuple[Pod, Wait]]:
    for role in situation.census:
        yield from ((pod, pod.wait) for pod in (*role.pending, *role.running) if pod.wait)


def _was_crashing(situation: Situation) -> bool:
    return any((c.type, c.status, c.reason) in CRASHING for c in situation.before.conditions)


def _recovering(situation: Situation) -> Iterator[tuple[Pod, Wait]]:
    """A program in a crash loop that runs again is likely to crash again: without patience, the status would
    change twice at each crash."""
    for role in situation.census:
        for pod in (*role.pending, *role.running):
            has_crashed = pod.restarts or pod.run_ended
            if not pod.wait and has_crashed and _until_stable(pod, situation.now) > 0:
                yield pod, Wait(reasons.CRASH_LOOP)


def _patience(situation: Situation, pod: Pod, wait: Wait) -> float:
    """Seconds until the wait of this pod is told. A crash loop began with the first crash that is remembered."""
    since = wait.since
    if wait.reason == reasons.CRASH_LOOP:
        mine = (pod.task.name, pod.attempt + 1)
        ends = (end.finished for end in situation.before.endings if (end.task, end.attempt) == mine)
        since = min((end for end in (*ends, pod.run_ended) if end), default=None)
    return PATIENCE - (situation.now - (since or situation.start)).total_seconds()


def _until_stable(pod: Pod, now: datetime) -> float:
    return PATIENCE - (now - pod.running_since).total_seconds() if pod.running_since else 0.0


def _next_look(wait: Wait, now: datetime) -> float:
    waited = (now - wait.since).total_seconds() if wait.since else 0.0
    return float(PATIENCE * 2 ** looks_due(wait, now) - waited)


def _has_words(wait: Wait) -> bool:
    return bool(wait.message) or wait.reason == reasons.CRASH_LOOP


def _turn(told: tuple[Pod, Wait]) -> tuple[bool, bool, str, int]:
    """Crashes last: often a program crashes because another task, which waits, is not there. Those that run again
    after those that wait, and then by task: so pods that stay as they are change nothing, in whatever order."""
    pod, wait = told
    return wait.reason == reasons.CRASH_LOOP, pod.wait is None, pod.task.role, pod.task.index


def _sentence(pod: Pod, wait: Wait) -> str:
    """In one line. The kubelet's words about a crash loop name its back-off; the program's say more."""
    words = _crash(pod) if wait.reason == reasons.CRASH_LOOP else wait.message
    text = f"{pod.task.name}: {' '.join(words.split())}"
    return text if len(text) <= LAST_WORDS else f"{text[: LAST_WORDS - 1]}…"


def _crash(pod: Pod) -> str:
    code = f"exits with code {pod.exit_code}" if pod.exit_code is not None else "fails"
    reason = f" ({pod.reason})" if pod.reason not in ("", "Error") else ""
    lines = pod.message.strip().splitlines()
    return f"{code}{reason} again and again" + (f": {lines[-1]}" if lines else "")
