"""Reads jobs from the specs that the cache has, and fetches specs that are too large to be kept."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.kubernetes.cache import JobKey
from tfyard.backends.kubernetes.fair_slots import FairSlots
from tfyard.backends.kubernetes.resources import JOBS, Resources
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.backends.kubernetes.writes import LONGEST_SILENT_WAIT
from tfyard.kube import Client, Conflict, requests, waiting_at_most
from tfyard.kube.errors import ErrorStatus
from tfyard.model import Job, Manifest, Problem, format_path

LARGE_AT_ONCE = 8
"""Jobs with large specs that are read at the same time: each takes several times the size of its spec."""
KEPT_BYTES = 16 << 20
"""Bytes of the specs whose jobs are kept decoded, which takes several times as much."""
TOO_DEEP = Problem(("spec",), "is nested too deeply to be read")


class DecodedJob(NamedTuple):
    view: StoredJob
    job: Job
    size: int


class JobReader:
    def __init__(self, client: Client, resources: Resources) -> None:
        self._client, self._resources = client, resources
        self.now = client.now
        self._slots = FairSlots(LARGE_AT_ONCE)
        self._jobs = OrderedDict[JobKey, DecodedJob]()
        """The one that was read last at the end."""
        self._kept_bytes = 0

    @asynccontextmanager
    async def job(self, key: JobKey, view: StoredJob) -> AsyncIterator[Job]:
        """The job of a view, decoded once per version of its spec: pods change often, specs hardly ever."""
        known = self._jobs.get(key)
        if known is not None and known.view.is_same_job(view):
            self._jobs.move_to_end(key)
            yield known.job
        elif view.has_spec:
            yield self._remember(key, view, view.unpacked())
        else:
            async with self._slots.slot(key.namespace, key.name):
                yield self._remember(key, view, await self._fetch(key, view))

    def forget(self, key: JobKey) -> None:
        """Drops a job that is deleted or not active. If it is needed again, it is read again."""
        if (known := self._jobs.pop(key, None)) is not None:
            self._kept_bytes -= known.size

    def _remember(self, key: JobKey, view: StoredJob, whole: StoredJob) -> Job:
        self.forget(key)
        known = self._jobs[key] = DecodedJob(view, read(whole), whole.size)
        self._kept_bytes += known.size
        while self._kept_bytes > KEPT_BYTES:
            self.forget(next(iter(self._jobs)))
        return known.job

    async def _fetch(self, key: JobKey, view: StoredJob) -> StoredJob:
        path = self._resources.jobs[key.group].path(key.namespace, key.name)
        with waiting_at_most(LONGEST_SILENT_WAIT):  # the job is read by a worker, which others need meanwhile
            whole = await self._client.send(requests.get(path), JOBS.one)
        if not view.is_same_job(whole.keep()):
            raise Conflict(ErrorStatus(409, "Conflict", "the job has changed since the watch reported it"))
        return whole


def read(view: StoredJob) -> Job:
    """The job of a view; if its spec is invalid, with its `problems`."""
    try:
        document = view.document()
        checked = formats.check(document)
    except RecursionError:
        document = view.shallow_document()
        return _partly(view, document, formats.check(document).job, [TOO_DEEP])
    if checked.job is not None and not checked.errors:
        return checked.job
    return _partly(view, document, checked.job, checked.errors)


def texts(problems: Iterable[Problem]) -> tuple[str, ...]:
    return tuple(f"{format_path(p.path)}: {p.message}" + (f" ({p.fix})" if p.fix else "") for p in problems)


def _partly(view: StoredJob, document: Manifest, readable: Job | None, problems: Iterable[Problem]) -> Job:
    job = readable or _outline(view)
    policy = replace(job.run_policy, managed_by=_managed_by(document["spec"]))
    return replace(job, run_policy=policy, problems=texts(problems))


def _outline(view: StoredJob) -> Job:
    """A job as far as it is known without its spec."""
    return Job(
        name=view.metadata.name,
        namespace=view.metadata.namespace,
        uid=view.metadata.uid,
        generation=view.metadata.generation,
        api_version=view.api_version,
        kind=view.kind,
    )


def _managed_by(spec: object) -> str | None:
    """managedBy as it is written, even if it is no known controller: then this operator ignores the job."""
    for policy in (spec, spec.get("runPolicy") if isinstance(spec, dict) else None):
        name = policy.get("managedBy") if isinstance(policy, dict) else None
        if isinstance(name, str):
            return name
    return None
