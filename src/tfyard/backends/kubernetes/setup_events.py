"""Finds what keeps a kubelet from setting up a pod: a failed mount is reported only in events.

Events are too many to be watched. Those of a pod whose setup takes long are listed, at growing intervals.
"""

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from tfyard.kube import Client, Kind, KubeError, list_all, requests
from tfyard.model import Job, Pod, Wait, WaitReason
from tfyard.planner.waiting import looks_due
from tfyard.views.objects import EventView

log = logging.getLogger(__name__)

WORDS: dict[str, WaitReason] = {
    "FailedAttachVolume": "Mount",
    "FailedMapVolume": "Mount",
    "FailedMount": "Mount",
    "FailedCreatePodSandBox": "Start",
    "NetworkNotReady": "Start",
}
AT_ONCE = 3
"""Most pods of a job whose events are listed in one pass: a few are enough to explain a large job."""
TIMEOUT = 5.0
"""Seconds. Nothing depends on the answer."""
EVENTS = Kind(EventView)


class EventLook(NamedTuple):
    number: int
    found: Wait | None


class SetupEvents:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._looks: dict[str, dict[str, EventLook]] = {}
        """Uid of a job -> uid of a pod -> the last look."""

    async def explain(self, job: Job, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """The pods, with explanations of those that wait without a message."""
        silent = {pod.uid: pod for pod in pods if pod.wait and not pod.wait.message}
        if not silent:
            self.forget(job.uid)
            return pods
        looked = {uid: look for uid, look in self._looks.get(job.uid, {}).items() if uid in silent}
        now = self._client.now()
        due = [pod for pod in silent.values() if _is_due(pod, looked.get(pod.uid), now)]
        new_looks = await asyncio.gather(*(self._look(job, pod, now) for pod in due[:AT_ONCE]))
        looks = self._looks[job.uid] = looked | dict(zip((pod.uid for pod in due), new_looks, strict=False))
        return tuple(_explained(pod, looks.get(pod.uid)) for pod in pods)

    def forget(self, uid: str) -> None:
        self._looks.pop(uid, None)

    async def _look(self, job: Job, pod: Pod, now: datetime) -> EventLook:
        about = requests.selecting(fields={"involvedObject.name": pod.name, "involvedObject.kind": "Pod"})
        events: list[EventView] = []
        try:
            async with asyncio.timeout(TIMEOUT):
                path = requests.EVENTS.path(job.namespace)
                events = (await list_all(self._client, EVENTS, path, about)).items
        except (KubeError, TimeoutError) as problem:
            log.info("cannot list the events of pod %s/%s: %s", job.namespace, pod.name, problem)
        return EventLook(looks_due(pod.wait, now), _last_word(pod.wait, events))


def _is_due(pod: Pod, look: EventLook | None, now: datetime) -> bool:
    return looks_due(pod.wait, now) > (look.number if look else 0)


def _last_word(wait: Wait | None, events: Iterable[EventView]) -> Wait | None:
    """The wait by the newest event: a kubelet that pulls the image has succeeded in mounting. Events from before
    the wait are those of an earlier pod of the same name."""
    since = wait.since if wait else None
    of_pod = (event for event in events if since is None or event.order[0] >= since)
    newest = max(of_pod, key=lambda event: event.order, default=EventView())
    word = WORDS.get(newest.reason)
    return Wait(word, newest.message, since) if word else None


def _explained(pod: Pod, look: EventLook | None) -> Pod:
    return replace(pod, wait=look.found) if look and look.found else pod
