"""Where a job's status is kept: in the TFJob itself, by its status subresource."""

import asyncio
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Raw
from msgspec.json import Decoder

from tfyard import formats
from tfyard.kube import Client, Kind, KubeError, Resource, requests
from tfyard.model import Decision, Event, Job, Manifest, Status
from tfyard.model.names import CONTROLLER

from .cache import Cache, JobKey
from .status_delay import Pace
from .views import JobView

EVENTS = Resource("", "v1", "events")
"""The core group's, as upstream's: its SDK finds events by their involvedObject."""
NEWS_CAN_WAIT, LULL = 5.0, 0.05
"""Seconds that an event gives way to pods and statuses when many jobs come together, and between two looks
whether they still do."""
LONGEST_MESSAGE = 1024
"""The server refuses longer event messages."""

Guard = Callable[[str, str], None]
"""Called with verb and resource before every write; raises when writing is no longer ours to do."""


class ClusterStore:
    def __init__(self, client: Client, cache: Cache, resources: dict[str, Resource], guard: Guard) -> None:
        self._client, self._cache, self._resources, self._guard = client, cache, resources, guard
        self._kind = Kind(JobView)
        self._unread = Decoder(Raw)
        self._pace = Pace()
        self._news: asyncio.Queue[tuple[str, Manifest, float]] = asyncio.Queue()
        self.is_busy: Callable[[], bool] = lambda: False
        self.in_rush: Callable[[], bool] = lambda: False
        self.on_lost_event: Callable[[Manifest, KubeError], None] = lambda _event, _problem: None
        self.on_report: Callable[[Job, Status, Decision], None] = lambda _job, _before, _decision: None

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        if decision.status == before:
            self._pace.release(job.uid)
        elif self._pace.holds(job.uid, decision, time.monotonic(), in_rush=self.in_rush()):
            return
        else:
            await self._write(job, decision.status)
        self.on_report(job, before, decision)
        for event in decision.events:
            self.tell(job, event)

    def due_in(self, uid: str) -> float | None:
        """Seconds until a status that was held back should be written; None if none was."""
        return self._pace.left(uid, time.monotonic())

    def forget(self, uid: str) -> None:
        self._pace.forget(uid)

    def tell(self, job: Job, event: Event) -> None:
        """Events are news, not memory: they go out behind the pods that others wait for."""
        self._news.put_nowait((job.namespace, build_event(job, event), time.monotonic()))

    async def announce(self) -> None:
        """Sends the next event. One that the server does not take is not worth failing a job for."""
        namespace, event, since = await self._news.get()
        try:
            while self.is_busy() and time.monotonic() - since < NEWS_CAN_WAIT:
                await asyncio.sleep(LULL)
            self._guard("create", "events")
            await self._client.send(requests.create(EVENTS.path(namespace), event), self._unread)
        except KubeError as problem:
            self.on_lost_event(event, problem)
        finally:
            self._news.task_done()

    async def all_said(self) -> None:
        """Returns when no event waits any more."""
        await self._news.join()

    async def _write(self, job: Job, status: Status) -> None:
        """Carries the resourceVersion on which the decision was made: whoever was faster wins, and we look
        again. The status subresource takes nothing but the status, so nothing else is sent."""
        group = job.api_version.partition("/")[0]
        resource = self._resources[group]
        view = self._cache.jobs.get(JobKey(group, job.namespace, job.name))
        if view is None:
            return  # deleted a moment ago: there is nothing to remember, and nowhere
        named = {"name": job.name, "namespace": job.namespace, "uid": job.uid}
        body = {
            "apiVersion": job.api_version,
            "kind": job.kind,
            "metadata": {**named, "resourceVersion": view.metadata.resource_version},
            "status": formats.dump_status(status),
        }
        self._guard("update", "tfjobs/status")
        path = resource.path(job.namespace, job.name, "status")
        self._cache.hear_job(resource, await self._client.send(requests.replace(path, body), self._kind.one))


def build_event(job: Job, event: Event) -> Manifest:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
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
