"""Sends the events of jobs, after the pods and statuses that jobs wait for."""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from tfyard.kube import KubeError, requests
from tfyard.kube.times import timestamp
from tfyard.model import Event, Job, Manifest
from tfyard.model.names import CONTROLLER

from .writes import UNREAD, NotLeading, Writer

LONGEST_WAIT, CHECK_EVERY = 5.0, 0.05
"""Seconds that an event waits at most while pods and statuses are being written, and between two checks."""
LONGEST_MESSAGE = 1024
"""The server refuses longer event messages."""


class EventRecorder:
    def __init__(
        self,
        writer: Writer,
        is_busy: Callable[[], bool],
        on_lost: Callable[[Manifest, KubeError], None],
    ) -> None:
        self._writer, self.is_busy, self._on_lost = writer, is_busy, on_lost
        self._queue: asyncio.Queue[tuple[str, Manifest, float]] = asyncio.Queue()

    def record(self, job: Job, event: Event) -> None:
        """Queue it. Nothing depends on events, so they are kept in memory only."""
        self._queue.put_nowait((job.namespace, build_event(job, event), time.monotonic()))

    async def run(self) -> None:
        """Until cancelled; several of these send as many events at the same time."""
        while True:
            with suppress(NotLeading):
                await self._send_next()

    async def flush(self) -> None:
        """Returns when no event is queued or being sent."""
        await self._queue.join()

    async def _send_next(self) -> None:
        """An event that the server does not accept is not worth failing a job."""
        namespace, event, since = await self._queue.get()
        try:
            while self.is_busy() and time.monotonic() - since < LONGEST_WAIT:
                await asyncio.sleep(CHECK_EVERY)
            request = requests.create(requests.EVENTS.path(namespace), event)
            await self._writer.send("create", "events", request, UNREAD)
        except KubeError as problem:
            self._on_lost(event, problem)
        finally:
            self._queue.task_done()


def build_event(job: Job, event: Event) -> Manifest:
    now = timestamp(datetime.now(UTC))
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job.name}.{secrets.token_hex(8)}", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": job.api_version,
            "kind": job.kind,
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:LONGEST_MESSAGE],
        "source": {"component": CONTROLLER},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
