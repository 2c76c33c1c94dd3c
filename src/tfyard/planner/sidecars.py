"""Containers that run on when the program of their pod has ended: a proxy, a log shipper.

The task has ended with its program, and the rest of its pod gets a moment for what it still has to send. After
that, a pod that stays is ended by a deadline of its own: to delete it would lose its logs.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from tfyard.model import END_AT_ONCE, Amend, Pod

MOMENT = 10.0
"""Seconds."""


def lingering(pods: Iterable[Pod], besides: Iterable[Pod] = ()) -> list[Pod]:
    """Those of which only other containers than the program run; without those that are deleted anyway."""
    others = {pod.uid for pod in besides}
    return [pod for pod in pods if pod.lingers_since and pod.deleting is None and pod.uid not in others]


def end(lingering: Iterable[Pod], now: datetime) -> Iterator[Amend]:
    for pod in lingering:
        if not may_go_on(pod, now):
            patch = {"metadata": {"uid": pod.uid}, "spec": {"activeDeadlineSeconds": END_AT_ONCE}}
            yield Amend("Pod", pod.name, patch)


def may_go_on(pod: Pod, now: datetime) -> bool:
    return _remaining(pod, now) > 0


def next_end(lingering: Iterable[Pod], now: datetime) -> float | None:
    """Seconds until the first of them must end; None: none of them is waited for."""
    left = (_remaining(pod, now) for pod in lingering)
    return min((seconds for seconds in left if seconds > 0), default=None)


def _remaining(pod: Pod, now: datetime) -> float:
    since = pod.lingers_since
    return MOMENT - (now - since).total_seconds() if since is not None else 0.0
