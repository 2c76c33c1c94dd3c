"""Where a job's status is kept: in the TFJob itself, by its status subresource."""

import time
from collections.abc import Callable

from tfyard import formats
from tfyard.kube import Kind, requests
from tfyard.model import Decision, Job, Status

from .cache import Cache, JobKey
from .resources import Resources
from .status_delay import StatusDelay
from .views import JobView
from .writes import Writer

OnReport = Callable[[Job, Status, Decision], None]


class ClusterStore:
    def __init__(
        self,
        writer: Writer,
        cache: Cache,
        resources: Resources,
        is_creating_many: Callable[[], bool],
        on_report: OnReport,
    ) -> None:
        self._writer, self._cache, self._resources = writer, cache, resources
        self.is_creating_many, self._on_report = is_creating_many, on_report
        self._kind = Kind(JobView)
        self._delay = StatusDelay()

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        if decision.status == before:
            self._delay.release(job.uid)
        elif self._delay.holds(job.uid, decision, time.monotonic(), is_creating_many=self.is_creating_many()):
            return
        else:
            await self._write(job, decision.status)
        self._on_report(job, before, decision)

    def due_in(self, uid: str) -> float | None:
        """Seconds until a delayed status should be written; None if none is delayed."""
        return self._delay.due_in(uid, time.monotonic())

    def forget(self, uid: str) -> None:
        self._delay.forget(uid)

    async def _write(self, job: Job, status: Status) -> None:
        """With the resourceVersion that the decision was based on: if somebody else was faster, the server answers
        Conflict, and the job is reconciled again. The subresource takes nothing but the status."""
        resource = self._resources.of_job(job)
        view = self._cache.jobs.get(JobKey(resource.group, job.namespace, job.name))
        if view is None:
            return  # deleted a moment ago
        meta = {"name": job.name, "namespace": job.namespace, "uid": job.uid}
        body = {
            "apiVersion": job.api_version,
            "kind": job.kind,
            "metadata": {**meta, "resourceVersion": view.metadata.resource_version},
            "status": formats.dump_status(status),
        }
        request = requests.replace(resource.path(job.namespace, job.name, "status"), body)
        answer = await self._writer.send("update", "tfjobs/status", request, self._kind.one)
        self._cache.apply_job_response(resource, answer)
