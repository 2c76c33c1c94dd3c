"""What keeps a kubelet from setting up a pod: a failed mount is reported in events, and nowhere else.

Events are too many to be watched. Those of a pod that is set up for long are listed, ever more rarely.
"""

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from tfyard.kube import Client, Kind, KubeError, requests
from tfyard.model import Job, Pod, Wait, WaitReason
from tfyard.overview.objects import Event
from tfyard.planner.waiting import looks_due

log = logging.getLogger(__name__)

WORDS: dict[str, WaitReason] = {
    "FailedAttachVolume": "Mount",
    "FailedMapVolume": "Mount",
    "FailedMount": "Mount",
    "FailedCreatePodSandBox": "Start",
    "NetworkNotReady": "Start",
}
AT_ONCE = 3
"""Pods of a job whose events are listed in one pass: of those of a large job, a few tell it all."""
TIMEOUT = 5.0
"""Seconds. Nothing depends on the answer."""
EVENTS = Kind(Event)


class Look(NamedTuple):
    number: int
    found: Wait | None


class SetupEvents:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._looks: dict[str, dict[str, Look]] = {}
        """By the uids of jobs, then of pods."""

    async def explain(self, job: Job, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """The pods, with what is known of those that wait in silence."""
        silent = {pod.uid: pod for pod in pods if pod.wait and not pod.wait.message}
        if not silent:
            self.forget(job.uid)
            return pods
        known = {uid: look for uid, look in self._looks.get(job.uid, {}).items() if uid in silent}
        now = self._client.now()
        due = [pod for pod in silent.values() if _is_due(pod, known.get(pod.uid), now)]
        found = await asyncio.gather(*(self._look(job, pod, now) for pod in due[:AT_ONCE]))
        looks = self._looks[job.uid] = known | dict(zip((pod.uid for pod in due), found, strict=False))
        return tuple(_explained(pod, looks.get(pod.uid)) for pod in pods)

    def forget(self, uid: str) -> None:
        self._looks.pop(uid, None)

    async def _look(self, job: Job, pod: Pod, now: datetime) -> Look:
        about = requests.selecting(fields={"involvedObject.name": pod.name, "involvedObject.kind": "Pod"})
        events: list[Event] = []
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._client.send(
                    requests.get(requests.EVENTS.path(job.namespace), about), EVENTS.page
                )
            events = answer.items or []
        except (KubeError, TimeoutError) as problem:
            log.info("cannot list the events of pod %s/%s: %s", job.namespace, pod.name, problem)
        return Look(looks_due(pod.wait, now), _last_word(pod.wait, events))


def _is_due(pod: Pod, look: Look | None, now: datetime) -> bool:
    return looks_due(pod.wait, now) > (look.number if look else 0)


def _last_word(wait: Wait | None, events: Iterable[Event]) -> Wait | None:
    """By the newest event: a kubelet that pulls the image has mounted what it could not mount before. Events from
    before the wait are those of an earlier pod of the same name."""
    since = wait.since if wait else None
    of_pod = (event for event in events if since is None or event.order[0] >= since)
    newest = max(of_pod, key=lambda event: event.order, default=Event())
    word = WORDS.get(newest.reason)
    return Wait(word, newest.message, since) if word else None


def _explained(pod: Pod, look: Look | None) -> Pod:
    return replace(pod, wait=look.found) if look and look.found else pod
