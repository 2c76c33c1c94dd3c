"""Sends the events of jobs, after more urgent writes of pods and statuses."""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from tfyard.kube import AlreadyExists, KubeError, requests
from tfyard.kube.times import timestamp
from tfyard.model import Event, Job, Manifest
from tfyard.model.names import CONTROLLER

from .fair_slots import FairSlots
from .writes import UNREAD, NotLeading, Writer

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Number of events in flight; a namespace alone has a quarter of them, so that pods and statuses come first."""
LONGEST_WAIT, CHECK_EVERY = 5.0, 0.05
"""Longest wait of an event while pods and statuses are written, and the interval of checks, in seconds."""
REMEMBERED = 300.0
"""Seconds during which an event is not sent again."""


class EventRecorder:
    def __init__(
        self,
        writer: Writer,
        is_busy: Callable[[str], bool],
        on_lost: Callable[[Manifest, KubeError], None],
    ) -> None:
        self._writer, self.is_busy, self._on_lost = writer, is_busy, on_lost
        self._queue: asyncio.Queue[tuple[str, Manifest, float]] = asyncio.Queue()
        self._slots = FairSlots(AT_ONCE)
        self._lost: dict[str, str] = {}
        """Namespace -> why its last event was not accepted."""
        self._recent: dict[str, float] = {}
        """Uid of a job and name of an event -> when it was recorded, the oldest first."""

    def record(self, job: Job, event: Event, occasion: str = "") -> None:
        """Queues an event. Nothing depends on events, so they are kept in memory only. One with an `occasion` has
        the same name whichever operator records it, and however often, so that it is stored once."""
        manifest, now = build_event(job, event, occasion), time.monotonic()
        while self._recent and next(iter(self._recent.values())) < now - REMEMBERED:
            del self._recent[next(iter(self._recent))]
        if occasion and _key(manifest) in self._recent:
            return
        if occasion:
            self._recent[_key(manifest)] = now
        self._queue.put_nowait((job.namespace, manifest, now))

    async def run(self) -> None:
        """Sends events until cancelled; each waits for a slot of its namespace: no tenant delays another."""
        async with asyncio.TaskGroup() as sending:
            while True:
                sending.create_task(self._send_in_turn(*await self._queue.get()))

    async def flush(self) -> None:
        """Returns when no event is queued or being sent."""
        await self._queue.join()

    async def _send_in_turn(self, namespace: str, event: Manifest, since: float) -> None:
        try:
            async with self._slots.slot(namespace, job=""):
                while self.is_busy(namespace) and time.monotonic() - since < LONGEST_WAIT:
                    await asyncio.sleep(CHECK_EVERY)
                await self._send(namespace, event)
        finally:
            self._queue.task_done()

    async def _send(self, namespace: str, event: Manifest) -> None:
        """Sends one event. If the server does not accept it, that must not fail a job."""
        try:
            request = requests.create(requests.EVENTS.path(namespace), event)
            await self._writer.send("create", "events", request, UNREAD)
            self._lost.pop(namespace, None)
        except AlreadyExists:
            return  # recorded before by another operator, which has ended since
        except NotLeading:
            self._recent.pop(_key(event), None)
        except KubeError as problem:
            self._recent.pop(_key(event), None)
            reason = str(problem).replace(event["metadata"]["name"], "")
            if self._lost.get(namespace) != reason:  # once for each change: it may last for days
                self._on_lost(event, problem)
            self._lost[namespace] = reason
        except Exception:  # about one event, and must not end the operator
            log.exception("cannot create event %s in namespace %s", event["reason"], namespace)


def _key(event: Manifest) -> str:
    return f"{event['involvedObject']['uid']} {event['metadata']['name']}"


def _mark(job: Job, event: Event, occasion: str) -> str:
    """The end of an event's name: random, as Kubernetes' own, if there is no occasion."""
    if not occasion:
        return secrets.token_hex(8)
    parts = (job.uid, event.type, event.reason, event.message, occasion)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def build_event(job: Job, event: Event, occasion: str) -> Manifest:
    now = timestamp(datetime.now(UTC))
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job.name}.{_mark(job, event, occasion)}", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": job.api_version,
            "kind": job.kind,
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": CONTROLLER},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
