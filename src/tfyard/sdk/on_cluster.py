"""A job on a cluster. Each question opens a connection of its own, so that threads may ask at the same time."""

import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from tfyard import formats
from tfyard.errors import TfyardError
from tfyard.extras import needs
from tfyard.file_trees import Copied
from tfyard.kube import Access
from tfyard.kube.sync import SyncClient
from tfyard.model.summary import JobSummary
from tfyard.overview import metrics
from tfyard.overview.evidence import Evidence
from tfyard.overview.job_view import JobView
from tfyard.overview.log_lines import LogEvent, Wanted
from tfyard.overview.metrics import Point
from tfyard.remote import action_waits, actions, evidence, jobs, logs, reruns, usage, views
from tfyard.remote.actions import Intent
from tfyard.remote.jobs import Found
from tfyard.sdk import threads
from tfyard.sdk.place import Changes

LOG = logging.getLogger("tfyard")


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
        with needs("kubernetes", "following the logs of a cluster"):
            from tfyard.remote import log_follow
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

    # --- what changes it

    def stop(self) -> None:
        self._perform(actions.stop)

    def resume(self) -> "OnCluster":
        self._perform(actions.resume)
        return self

    def restart(self, words: tuple[str, ...]) -> None:
        self._perform(lambda client, found: actions.restart(client, found, words))

    def scale(self, counts: dict[str, int]) -> None:
        self._perform(lambda client, found: actions.scale(client, found, counts))

    def delete(self) -> None:
        self._perform(actions.delete)

    def rerun(self, changes: Changes) -> "OnCluster":
        wanted = reruns.read(changes.sets, changes.env, changes.name)
        with SyncClient(self.access) as client:
            intent = actions.rerun(client, self.found(client), wanted)
            _do(client, intent)
            return OnCluster(self.access, jobs.find(client, self.namespace, intent.made))

    def _perform(self, intend: Callable[[SyncClient, Found], Intent]) -> None:
        """And waits until it is so: pods are gone, or run again."""
        with SyncClient(self.access) as client:
            intent = intend(client, self.found(client))
            _do(client, intent)
            if intent.requests and (intent.pods or intent.verb == "delete"):
                action_waits.until_done(client, intent, LOG.info, math.inf)

    def get(self, path: str, to: Path) -> Copied:
        with SyncClient(self.access) as client:
            found = self.found(client)
        return threads.call(lambda: self._get(found, path, to))

    async def _get(self, found: Found, path: str, to: Path) -> Copied:
        with needs("kubernetes", "copying from a cluster"):
            from tfyard.kube import Client
            from tfyard.remote import copying
        async with Client(self.access) as client:
            return await copying.fetch(client, found, path, to)


def _do(client: SyncClient, intent: Intent) -> None:
    for note in intent.notes:
        LOG.info("%s: %s", intent.found.name, note)
    actions.perform(client, intent)
