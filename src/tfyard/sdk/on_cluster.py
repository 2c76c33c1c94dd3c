"""A job on a cluster. Each question opens a connection of its own, so that threads may ask at the same time.

What a question needs is imported when it is asked: a command of the terminal asks one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from tfyard.extras import needs
from tfyard.kube.sync import SyncClient
from tfyard.remote import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from tfyard.file_trees import Copied
    from tfyard.kube import Access
    from tfyard.model.summary import JobSummary
    from tfyard.overview.evidence import Evidence
    from tfyard.overview.job_view import JobView, ToldEvent
    from tfyard.overview.log_lines import LogEvent, Wanted
    from tfyard.overview.metrics import Point
    from tfyard.remote.actions import Intent
    from tfyard.remote.jobs import Found
    from tfyard.remote.tasks import TaskContainer
    from tfyard.sdk.place import Changes, Executed

LOG = logging.getLogger("tfyard")


class OnCluster:
    def __init__(self, access: Access, found: Found, client: SyncClient | None = None) -> None:
        """`client`: by which it was just found. A command of the terminal asks by this one, about the job as it
        was found."""
        self.access, self._found, self._client = access, found, client
        self.name, self.namespace = found.name, found.namespace

    def found(self, client: SyncClient) -> Found:
        """The job as it is now: this one, not a newer one of its name."""
        now = jobs.find(client, self.namespace, self.name)
        if now.uid != self._found.uid:
            raise jobs.Missing(f"TFJob {self.name} was deleted; there is a newer one of that name")
        return now

    @contextmanager
    def _asking(self) -> Iterator[tuple[SyncClient, Found]]:
        with self._client or SyncClient(self.access) as client:
            yield client, self._found if self._client else self.found(client)

    def summary(self) -> JobSummary:
        with self._asking() as (_, found):
            return found.summary

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        with self._client or SyncClient(self.access) as client:
            yield from jobs.follow(client, self._found, deadline)

    def exit_code(self) -> int | None:
        return None

    def tasks(self) -> list[str]:
        from tfyard.remote import tasks

        with self._asking() as (_, found):
            return tasks.names(found)

    def logs(self, wanted: Wanted, *, follow: bool) -> Iterator[LogEvent | None]:
        from tfyard.remote import logs
        from tfyard.sdk import threads

        with self._asking() as (client, found):
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
        from tfyard.overview import metrics
        from tfyard.remote import usage

        with self._asking() as (client, found):
            specs = (found.manifest.get("spec") or {}).get("tfReplicaSpecs") or {}
            return usage.points(client, found, tasks or metrics.leading({f"{r.lower()}-0" for r in specs}))

    def evidence(self) -> Evidence:
        from tfyard.remote import evidence

        with self._asking() as (client, found):
            return evidence.gather(client, found.manifest)

    def view(self) -> JobView:
        from tfyard.remote import views

        with self._asking() as (client, found):
            return views.view(client, found)

    def events(self) -> list[ToldEvent]:
        from tfyard import formats
        from tfyard.remote import events

        with self._asking() as (client, found):
            return events.events(client, found, formats.check(found.manifest).job)

    # --- what changes it

    def stop(self) -> None:
        from tfyard.remote import actions

        self._perform(actions.stop)

    def resume(self) -> OnCluster:
        from tfyard.remote import actions

        self._perform(actions.resume)
        return self

    def restart(self, words: tuple[str, ...]) -> None:
        from tfyard.remote import actions

        self._perform(lambda client, found: actions.restart(client, found, words))

    def scale(self, counts: dict[str, int]) -> None:
        from tfyard.remote import actions

        self._perform(lambda client, found: actions.scale(client, found, counts))

    def delete(self) -> None:
        from tfyard.remote import actions

        self._perform(actions.delete)

    def rerun(self, changes: Changes) -> OnCluster:
        from tfyard.remote import actions, reruns

        wanted = reruns.read(changes.sets, changes.env, changes.name)
        with self._asking() as (client, found):
            intent = actions.rerun(client, found, wanted)
            _do(client, intent)
            return OnCluster(self.access, jobs.find(client, self.namespace, intent.made))

    def _perform(self, intend: Callable[[SyncClient, Found], Intent]) -> None:
        """And waits until it is so: pods are gone, or run again."""
        from tfyard.remote import action_waits

        with self._asking() as (client, found):
            intent = intend(client, found)
            _do(client, intent)
            if intent.requests and (intent.pods or intent.verb == "delete"):
                action_waits.until_done(client, intent, LOG.info, math.inf)

    def get(self, path: str, to: Path) -> Copied:
        from tfyard.sdk import threads

        with self._asking() as (_, found):
            pass
        return threads.call(lambda: self._get(found, path, to))

    async def _get(self, found: Found, path: str, to: Path) -> Copied:
        with needs("kubernetes", "copying from a cluster"):
            from tfyard.kube import Client
            from tfyard.remote import copying
        async with Client(self.access) as client:
            return await copying.fetch(client, found, path, to)

    # --- what reaches into it

    def exec(self, task: str, argv: tuple[str, ...]) -> Executed:
        from tfyard.sdk import threads

        place = self._running(task)
        return threads.call(lambda: self._exec(place, argv))

    async def _exec(self, place: TaskContainer, argv: tuple[str, ...]) -> Executed:
        from tfyard.sdk.place import Executed

        with needs("kubernetes", "a command in a task of a cluster"):
            from tfyard.kube import Client, pod_streams
        command = pod_streams.Command(
            namespace=place.namespace, pod=place.pod, container=place.container, argv=argv
        )
        written = {pod_streams.STDOUT: b"", pod_streams.STDERR: b""}
        async with Client(self.access) as client, pod_streams.start(client, command) as process:
            async for stream, data in process.output():
                written[stream] += data
            code = await process.wait()
        return Executed(code, *(text.decode(errors="replace") for text in written.values()))

    def _running(self, task: str) -> TaskContainer:
        """NotRunning if it is not, with the reason."""
        from tfyard.remote import tasks

        with self._asking() as (client, found):
            return tasks.container_of(found, tasks.pods(client, found), task)

    @contextmanager
    def tensorboard(self, log_dir: str) -> Iterator[str]:
        from tfyard.model.names import TENSORBOARD_PORT
        from tfyard.remote.forwarding import Port
        from tfyard.sdk import boards, threads
        from tfyard.sdk.pages import Here

        with self._asking() as (_, found):
            here, source = Here(Port(TENSORBOARD_PORT), LOG.info), boards.Source(log_dir=log_dir)
        making = boards.answering(boards.of_jobs(self.access, [found], source, here))
        with threads.entered(lambda: making) as address:
            yield address

    @contextmanager
    def port_forward(self, task: str, port: int) -> Iterator[str]:
        from tfyard.sdk import threads

        self._running(task)
        with threads.entered(lambda: self._forward(task, port)) as address:
            yield address

    @asynccontextmanager
    async def _forward(self, task: str, port: int) -> AsyncIterator[str]:
        with needs("kubernetes", "ports of a task of a cluster"):
            from tfyard.kube import Client
            from tfyard.remote.forwarding import HOST, Port
            from tfyard.sdk import pages
        async with (
            Client(self.access) as client,
            pages.task_ports(client, self._found, task, [Port(port)], LOG.info) as (made, _),
        ):
            yield f"{HOST}:{made.bound[0].local}"


def _do(client: SyncClient, intent: Intent) -> None:
    from tfyard.remote import actions

    for note in intent.notes:
        LOG.info("%s: %s", intent.found.name, note)
    actions.perform(client, intent)
