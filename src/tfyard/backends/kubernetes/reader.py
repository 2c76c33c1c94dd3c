"""A cluster as a JobReader: TFJobs, their events and their logs."""

from collections.abc import AsyncIterator
from datetime import datetime

import msgspec
from msgspec import Struct

from tfyard import formats
from tfyard.backends.base import Read
from tfyard.errors import Invalid
from tfyard.kube import Changed, Client, Kind, Removed, Resource, Snapshot, requests, watch
from tfyard.kube.decoding import decode
from tfyard.model import TENSORFLOW_CONTAINER, Status, Task
from tfyard.model.names import pod_name
from tfyard.model.summary import JobSummary, RecordedEvent

from .resources import TFJOBS

LONGEST_SILENCE = 24 * 3600.0
"""Seconds that a training may take between two lines of its log."""
UNREADABLE = Status(phase="Unknown")
"""Of a job whose stored status cannot be read: one such job must not hide the others."""


class _Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    creation_timestamp: datetime
    resource_version: str = ""


class _Job(Struct, frozen=True):
    metadata: _Meta
    status: msgspec.Raw = msgspec.Raw(b"{}")


class _Event(Struct, frozen=True, rename="camel"):
    metadata: _Meta
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    last_timestamp: datetime | None = None


_JOBS, _EVENTS = Kind(_Job), Kind(_Event)


class ClusterReader:
    """Of one namespace, or of all. `client` is needed only to watch and to follow."""

    def __init__(
        self, namespace: str = "", resource: Resource = TFJOBS, client: Client | None = None
    ) -> None:
        self._namespace, self._resource, self._client = namespace, resource, client

    def list_jobs(self) -> Read[list[JobSummary]]:
        def read(answer: bytes) -> list[JobSummary]:
            return [_summary(job) for job in decode(_JOBS.page, answer).items or []]

        return Read(requests.get(self._resource.path(self._namespace)), read)

    def get_job(self, name: str) -> Read[JobSummary]:
        path = self._resource.path(self._namespace, name)
        return Read(requests.get(path), lambda answer: _summary(decode(_JOBS.one, answer)))

    def list_events(self, name: str, kind: str = "TFJob") -> Read[list[RecordedEvent]]:
        of = requests.selecting(fields={"involvedObject.name": name, "involvedObject.kind": kind})

        def read(answer: bytes) -> list[RecordedEvent]:
            found = sorted(decode(_EVENTS.page, answer).items or [], key=_turn)
            return [_recorded(event) for event in found]

        return Read(requests.get(requests.EVENTS.path(self._namespace), of), read)

    async def watch(self) -> AsyncIterator[list[JobSummary]]:
        known: dict[str, JobSummary] = {}
        async for change in watch(self._connected(), _JOBS, self._resource.path(self._namespace)):
            match change:
                case Snapshot(items):
                    known = {job.metadata.uid: _summary(job) for job in items}
                case Changed(job):
                    known[job.metadata.uid] = _summary(job)
                case Removed(job):
                    known.pop(job.metadata.uid, None)
            yield list(known.values())

    async def follow(self, name: str, task: Task) -> AsyncIterator[str]:
        path = requests.PODS.path(self._namespace, pod_name(name, task), "log")
        query = {"container": TENSORFLOW_CONTAINER, "follow": "true"}
        rest = b""
        async with self._connected().stream(requests.get(path, query), LONGEST_SILENCE) as chunks:
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
        if rest:
            yield rest.decode("utf-8", "replace")

    def _connected(self) -> Client:
        if self._client is None:
            raise ValueError("to watch and to follow, a ClusterReader needs a client")
        return self._client


def _summary(job: _Job) -> JobSummary:
    meta = job.metadata
    try:
        status = formats.load_status({"status": msgspec.json.decode(job.status)})
    except Invalid:
        status = UNREADABLE
    return JobSummary(
        name=meta.name,
        namespace=meta.namespace,
        job=meta.name,
        created=meta.creation_timestamp,
        status=status,
    )


def _turn(event: _Event) -> tuple[datetime, int]:
    """Events of one second are told apart by the order in which they were stored."""
    version = event.metadata.resource_version
    return event.last_timestamp or event.metadata.creation_timestamp, int(version) if version.isdigit() else 0


def _recorded(event: _Event) -> RecordedEvent:
    return RecordedEvent(
        type="Warning" if event.type == "Warning" else "Normal",
        reason=event.reason,
        message=event.message,
        at=event.last_timestamp or event.metadata.creation_timestamp,
        count=event.count or 1,
    )
