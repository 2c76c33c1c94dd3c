"""Pods that go on after their program has ended: because of a proxy, a log shipper, or a restart that is due.

The task has ended with its program, and sidecars get a moment for what they still have to send. After that, a pod
that stays is ended by its activeDeadlineSeconds, because deleting it would delete its logs. The same goes for a
pod whose program would be restarted in place though its job has ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from tfyard.model import END_AT_ONCE, Amend, Pod

from .reasons import STOPPED_RESTARTS, STOPPED_SIDECARS

MOMENT = 10.0
"""Seconds that sidecars may run after the program has ended."""


def lingering(pods: Iterable[Pod], besides: Iterable[Pod] = ()) -> list[Pod]:
    """Pods in which only other containers than the program run, except `besides`, which are deleted anyway."""
    others = {pod.uid for pod in besides}
    return [pod for pod in pods if pod.lingers_since and pod.deleting is None and pod.uid not in others]


def end(lingering: Iterable[Pod], now: datetime) -> Iterator[Amend]:
    yield from (end_in_place(pod, STOPPED_SIDECARS) for pod in lingering if not may_go_on(pod, now))


def end_restarts(pods: Iterable[Pod]) -> Iterator[Amend]:
    """End pods whose program would be restarted in place, whatever the restart policy says."""
    for pod in pods:
        if pod.restart_due and not pod.told_to_end and pod.deleting is None:
            yield end_in_place(pod, STOPPED_RESTARTS)


def end_in_place(pod: Pod, reason: str, annotations: Mapping[str, str] = {}) -> Amend:
    """Ends a pod without deleting it, so that its logs are kept."""
    marks = {"annotations": annotations} if annotations else {}
    patch = {"metadata": {"uid": pod.uid, **marks}, "spec": {"activeDeadlineSeconds": END_AT_ONCE}}
    return Amend("Pod", pod.name, patch, reason)


def may_go_on(pod: Pod, now: datetime) -> bool:
    return _remaining(pod, now) > 0


def next_end(lingering: Iterable[Pod], now: datetime) -> float | None:
    """Seconds until the first of these pods must end; None: none has time left."""
    left = (_remaining(pod, now) for pod in lingering)
    return min((seconds for seconds in left if seconds > 0), default=None)


def _remaining(pod: Pod, now: datetime) -> float:
    since = pod.lingers_since
    return MOMENT - (now - since).total_seconds() if since is not None else 0.0
