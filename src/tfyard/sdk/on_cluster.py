"""Jobs on a cluster. Each question opens its own connection, so that threads can ask at the same time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tfyard.errors import NoSuchJob, NotPossible, NotRunning, TfyardError
from tfyard.extras import needs
from tfyard.kube import Forbidden
from tfyard.kube.sync import SyncClient
from tfyard.logs.lines import only
from tfyard.model.callbacks import Say
from tfyard.remote.reading import jobs
from tfyard.sdk import rows
from tfyard.sdk.place import CommandEnded, Done, Intent, SpecText

# Each method imports what only it needs: 30 ms for questions and actions (planner/, formats/), 20 ms for asyncio,
# 200 ms for streams (aiohttp). Lists need none of it; `tests/cli/test_get.py` asserts that.

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tfyard.file_trees import Copied, CopyProgress
    from tfyard.kube import Access
    from tfyard.logs.lines import LogEvent, LogSelection
    from tfyard.model import Manifest
    from tfyard.model.summary import JobSummary
    from tfyard.overview.evidence import Evidence
    from tfyard.overview.job_record import JobRecord
    from tfyard.overview.job_view import JobView, ToldEvent
    from tfyard.overview.metrics import Point
    from tfyard.overview.waiting import WaitResult
    from tfyard.remote.acting import actions
    from tfyard.remote.reading.jobs import StoredTFJob
    from tfyard.remote.reading.usage import JobUsage
    from tfyard.sdk.cluster_streams import ClusterStreams
    from tfyard.sdk.forwarding import Port
    from tfyard.sdk.pages import LocalSide, Page, Ports
    from tfyard.sdk.place import (
        CommandOutput,
        Copy,
        HelperOptions,
        Listed,
        NotebookOptions,
        Place,
        RerunOptions,
        TaskCommand,
    )

PAST = {
    "stop": "stopped",
    "resume": "resumed",
    "restart": "restarted",
    "scale": "scaled",
    "delete": "deleted",
}
GOES_ON = {
    "stop": "its pods are deleted after their grace period",
    "restart": "its tasks start again",
    "delete": "the job and its pods are deleted",
}


class OnCluster:
    folder, events_kept = None, "a cluster keeps them for an hour"
    rendered_as: tuple[str, ...] = ("plain", "tfjob")

    def __init__(self, access: Access, job: StoredTFJob, say: Say, client: SyncClient | None = None) -> None:
        """`client`: the connection that found the job. Commands of the terminal use it, and the job as it was
        found; without it, each question opens a connection and reads the job again."""
        self._access, self._job, self._say, self._client = access, job, say, client
        self.name, self.title, self.namespace = job.name, job.title, job.namespace
        self.where = f"in the namespace {job.namespace}"

    @contextmanager
    def _asking(self) -> Iterator[tuple[SyncClient, StoredTFJob]]:
        with self._client or SyncClient(self._access) as client:
            yield client, self._job if self._client else self._now(client)

    @contextmanager
    def _entering(self) -> Iterator[tuple[SyncClient, StoredTFJob]]:
        """The same as `_asking`; a missing permission is reported with how it is granted."""
        from tfyard.remote.reading.refusals import EDIT, explained

        with explained(self.namespace, EDIT), self._asking() as asked:
            yield asked

    def _now(self, client: SyncClient) -> StoredTFJob:
        """The current state of the job; raises if another job has its name by now."""
        now = jobs.find(client, self.namespace, self.name)
        if now.uid != self._job.uid:
            raise NoSuchJob(f"TFJob {self.name} was deleted; there is a newer one of that name")
        return now

    def _current(self) -> StoredTFJob:
        if self._client:
            return self._job
        with SyncClient(self._access) as client:
            return self._now(client)

    def summary(self) -> JobSummary:
        return self._current().summary

    def row(self) -> Listed:
        return rows.of_tfjob(self.title, self.summary())

    def sweep(self) -> None:
        return None

    def trials(self) -> list[Place]:
        raise NotPossible(f"{self.name} is a job: only sweeps have trials")

    def manifest(self) -> Manifest:
        return self._current().manifest

    def specs(self) -> list[SpecText]:
        from tfyard.remote.reading import applied_manifest

        manifest = self.manifest()
        given = applied_manifest.last_applied(manifest)
        before = [SpecText("given", "\n".join((*given.lines(), "")))] if given else []
        return [*before, SpecText("applied", applied_manifest.stored_text(manifest))]

    def code(self, helper: HelperOptions) -> list[str]:
        from tfyard.remote.submitting import code_lookup

        with self._asking() as (client, job):
            where = code_lookup.location(job)
            if where.kind != "claim":
                return code_lookup.lines(where, code_lookup.listed(client, job, where))
        streams = self._streams("looking into a claim", job)
        from tfyard.sdk import threads

        return code_lookup.lines(where, threads.call(lambda: streams.code_files(where, helper)))

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        with self._client or SyncClient(self._access) as client:
            yield from jobs.follow(client, self._job, deadline)

    def tasks(self) -> list[str]:
        from tfyard.remote.reading import tasks

        return tasks.names(self._current())

    def require_running(self, task: str) -> None:
        from tfyard.remote.reading import tasks

        with self._entering() as (client, job):
            tasks.container_of(job, tasks.pods(client, job), task)

    def logs(self, wanted: LogSelection) -> Iterator[LogEvent]:
        from tfyard.remote.logs import stored_logs

        with self._asking() as (client, job):
            yield from stored_logs.read(client, job, wanted)

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        from tfyard.logs.lines import chosen
        from tfyard.overview import metrics
        from tfyard.remote.reading import usage
        from tfyard.remote.reading.tasks import names

        with self._asking() as (client, job):
            specs = (job.manifest.get("spec") or {}).get("tfReplicaSpecs") or {}
            first = {f"{role.lower()}-0" for role in specs}
            return usage.points(client, job, chosen(tasks, names(job)) if tasks else metrics.leading(first))

    def meter(self) -> JobUsage:
        from tfyard.remote.reading.usage import JobUsage

        return JobUsage(self._client or SyncClient(self._access), self._current())

    def evidence(self) -> Evidence:
        from tfyard.remote.reading import evidence

        with self._asking() as (client, job):
            return evidence.gather(client, job.manifest)

    def view(self) -> JobView:
        from tfyard.remote.reading import views

        with self._asking() as (client, job):
            return views.view(client, job)

    def events(self) -> list[ToldEvent]:
        from tfyard import formats
        from tfyard.remote.reading import events, views

        with self._asking() as (client, job):
            try:
                pods = views.pods(client, job)
            except Forbidden:
                pods = []  # names and times tell which task an event is about
            return events.events(client, job, formats.check(job.manifest).job, pods)

    def job_record(self) -> JobRecord:
        from tfyard.remote.reading import job_records

        with self._asking() as (client, job):
            return job_records.read(client, job)

    def submitter(self) -> str:
        from tfyard.remote.reading import job_records

        with self._asking() as (client, job):
            return job_records.submitter_of(client, job)

    def previous(self) -> Place | None:
        from tfyard.remote.acting import reruns

        with self._asking() as (client, job):
            name = reruns.previous(client, job)
        return self._called(name) if name else None

    def missing_permissions(self) -> dict[str, str]:
        from tfyard.remote.reading import refusals

        with self._asking() as (client, job):
            return refusals.missing_permissions(client, job.resource, self.namespace)

    # --- actions

    def stop(self) -> Intent:
        return self._intent("stop")

    def resume(self) -> Intent:
        return self._intent("resume")

    def restart(self, words: tuple[str, ...]) -> Intent:
        return self._intent("restart", words=words)

    def scale(self, counts: dict[str, int]) -> Intent:
        return self._intent("scale", counts=counts)

    def delete(self) -> Intent:
        return self._intent("delete")

    def rerun(self, changes: RerunOptions) -> Intent:
        from tfyard.remote.acting import reruns

        read = reruns.read(changes.sets, changes.env, changes.name)
        return self._intent("rerun", changes=read, is_exact=changes.is_exact)

    def _intent(self, verb: str, **words: Any) -> Intent:
        from tfyard.remote.acting import actions

        with self._asking() as (client, job):
            intent: actions.ClusterIntent = getattr(actions, verb)(client, job, **words)
        return Intent(
            name=self.name,
            title=self.title,
            heading=f"{intent.verb} {self.title} {self.where}",
            goes=intent.goes,
            stays=intent.stays,
            notes=intent.notes,
            compare=partial(actions.compared, intent) if intent.becomes else None,
            perform=partial(self._perform, intent) if intent.requests else None,
        )

    def _perform(self, intent: actions.ClusterIntent) -> Done:
        from tfyard.remote.acting import actions

        with self._client or SyncClient(self._access) as client:
            actions.perform(client, intent, self._say)
        if intent.made:
            kind = self.title.rpartition("/")[0]
            return Done(text=f"{kind}/{intent.made} created", made=partial(self._called, intent.made))
        wait = partial(self._wait, intent)
        return Done(text=f"{self.title} {PAST[intent.verb]}", wait=wait, goes_on=GOES_ON.get(intent.verb, ""))

    def _wait(self, intent: actions.ClusterIntent, say: Say, timeout: float) -> Iterator[str]:
        """Wait until the pods are deleted, or run again."""
        from tfyard.remote.acting import actions

        if intent.pods or intent.verb == "delete":
            with self._client or SyncClient(self._access) as client:
                actions.until_done(client, intent, say, timeout)
        if intent.verb == "restart":
            yield f"running again: {', '.join(intent.pods)}"

    def _called(self, name: str) -> OnCluster:
        with self._client or SyncClient(self._access) as client:
            return OnCluster(self._access, jobs.find(client, self.namespace, name), self._say)

    # --- streams

    def _streams(self, what: str, job: StoredTFJob | None = None) -> ClusterStreams:
        """Streams need asyncio and aiohttp, which the extra `kubernetes` installs."""
        with needs("kubernetes", what):
            from tfyard.sdk.cluster_streams import ClusterStreams
        return ClusterStreams(self._access, job or self._current(), self._say)

    def copy(self, copy: Copy, progress: CopyProgress) -> Copied:
        streams = self._streams("tfyard cp")
        from tfyard.remote.reading.refusals import EDIT, explained
        from tfyard.sdk import threads

        with explained(self.namespace, EDIT):
            return threads.call(lambda: streams.copy(copy, progress))

    def follow(self, wanted: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
        """Follow the logs and the job itself, so its state need not be read first."""
        with needs("kubernetes", "tfyard logs -f"):
            from tfyard.remote.logs import follow
        return follow.follow(self._access, self._job, wanted)

    def exec_here(self, task: str, command: TaskCommand) -> int:
        from tfyard.remote.reading import tasks

        streams = self._streams("tfyard exec")
        with self._entering() as (client, job):
            where = tasks.container_of(job, tasks.pods(client, job), task, command.container)
            client.close()  # the command may take long
            return streams.exec_here(where, command)

    async def exec(
        self, tasks: Sequence[str], command: TaskCommand
    ) -> AsyncIterator[CommandOutput | CommandEnded]:
        from tfyard.remote.reading.tasks import container_of, pods

        streams, containers = self._streams("tfyard exec"), []
        with self._entering() as (client, job):
            known = pods(client, job)
        for task in tasks:
            try:
                containers.append(container_of(job, known, task, command.container))
            except NotRunning as problem:
                yield CommandEnded(task, 0, problem)
        if containers:
            async for event in streams.exec(containers, command):
                yield event

    def stacks(self, tasks: Sequence[str]) -> AsyncIterator[CommandOutput | CommandEnded]:
        from tfyard.sdk.place import TaskCommand
        from tfyard.sdk.stacks import IN_CONTAINER

        return self.exec(tasks, TaskCommand(argv=IN_CONTAINER))

    def port_forward(self, words: Sequence[str], ports: Sequence[Port]) -> AbstractAsyncContextManager[Ports]:
        if self.summary().status.is_finished:
            more = f"`tfyard tensorboard {self.name}` shows its summaries, `tfyard cp` gets its files"
            raise TfyardError(f"{self.name} has ended, its tasks have no ports any more; {more}")
        return self._streams("tfyard port-forward").ports(only(words, self.tasks()), ports)

    def tensorboard(
        self, others: Sequence[Place], log_dir: str, helper: HelperOptions, here: LocalSide
    ) -> AbstractAsyncContextManager[list[Page]]:
        other_jobs = []
        for other in others:
            if not isinstance(other, OnCluster):
                raise NotPossible(
                    f"{self.title} is {self.where}, {other.title} {other.where}: a board for each"
                )
            other_jobs.append(other._current())
        return self._streams("tfyard tensorboard").boards(other_jobs, log_dir, helper, here)

    def notebook(self, wanted: NotebookOptions, here: LocalSide) -> AbstractAsyncContextManager[Page]:
        return self._streams("tfyard notebook").notebook(wanted, here)
