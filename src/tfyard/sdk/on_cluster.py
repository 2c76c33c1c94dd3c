"""A job on a cluster. Each question opens a connection of its own, so that threads may ask at the same time."""

from collections.abc import Callable, Iterator

from tfyard import formats
from tfyard.errors import TfyardError
from tfyard.kube import Access, Patch, requests
from tfyard.kube.sync import SyncClient
from tfyard.model.summary import JobSummary
from tfyard.overview import metrics
from tfyard.overview.evidence import Evidence
from tfyard.overview.job_view import JobView
from tfyard.overview.log_lines import LogEvent, Wanted
from tfyard.overview.metrics import Point
from tfyard.remote import evidence, jobs, logs, usage, views
from tfyard.remote.jobs import Found
from tfyard.sdk import threads


class OnCluster:
    def __init__(self, access: Access, found: Found) -> None:
        self.access, self._found = access, found
        self.name, self.namespace = found.name, found.namespace

    def found(self, client: SyncClient) -> Found:
        """The job as it is now: this one, not a newer one of its name."""
        now = jobs.find(client, self.namespace, self.name)
        if now.manifest["metadata"]["uid"] != self._found.manifest["metadata"]["uid"]:
            raise jobs.Missing(f"TFJob {self.name} was deleted; there is a newer one of that name")
        return now

    def summary(self) -> JobSummary:
        with SyncClient(self.access) as client:
            return self.found(client).summary

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        with SyncClient(self.access) as client:
            yield from jobs.follow(client, self._found, deadline)

    def exit_code(self) -> int | None:
        return None

    def tasks(self) -> list[str]:
        with SyncClient(self.access) as client:
            found = self.found(client)
        job = formats.check(found.manifest).job
        if job is None:
            raise TfyardError(f"{self.name} cannot be read: `tfyard describe {self.name}` says why")
        return [task.name for task in job.tasks()]

    def logs(self, wanted: Wanted, *, follow: bool) -> Iterator[LogEvent | None]:
        with SyncClient(self.access) as client:
            found = self.found(client)
            if not follow:
                yield from logs.read(client, found, wanted)
                return
        following: Iterator[LogEvent | None] = threads.iterate(lambda put: self._follow(found, wanted, put))
        yield from following

    async def _follow(self, found: Found, wanted: Wanted, put: Callable[[LogEvent], None]) -> None:
        from tfyard.remote import log_follow  # brings aiohttp

        async for _ in log_follow.follow(self.access, found, wanted, put):
            pass

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        with SyncClient(self.access) as client:
            found = self.found(client)
            specs = (found.manifest.get("spec") or {}).get("tfReplicaSpecs") or {}
            return usage.points(client, found, tasks or metrics.leading({f"{r.lower()}-0" for r in specs}))

    def evidence(self) -> Evidence:
        with SyncClient(self.access) as client:
            return evidence.gather(client, self.found(client).manifest)

    def view(self) -> JobView:
        with SyncClient(self.access) as client:
            return views.view(client, self.found(client))

    def stop(self) -> None:
        with SyncClient(self.access) as client:
            patch = {"spec": {"runPolicy": {"suspend": True}}}
            client.send(requests.patch(self.found(client).path, patch, Patch.MERGE))
