"""Follows the logs of all tasks of a job until it ends: over restarts of tasks, nodes and the API server.

A following is a coroutine with a task for each log, so one thread follows as many jobs as a program asks for.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tfyard.errors import TfyardError
from tfyard.kube import (
    Access,
    Changed,
    Client,
    Forbidden,
    Kind,
    KubeError,
    Removed,
    Snapshot,
    WatchOptions,
    list_all,
    requests,
    watch,
)
from tfyard.logs import remarks
from tfyard.logs.lines import LogEvent, LogSelection, Remark, Start
from tfyard.model import Ending, Status
from tfyard.model.names import JOB_NAME
from tfyard.model.summary import JobSummary
from tfyard.overview import waiting
from tfyard.overview.waiting import WaitResult
from tfyard.overview.wording import duration
from tfyard.remote.logs import pod_starts
from tfyard.remote.logs.pod_starts import start_of
from tfyard.remote.logs.stored_logs import fate, since_restart
from tfyard.remote.logs.tail import DEFAULT_PACE, JobPods, Tail, TailPace
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.refusals import VIEW, explained
from tfyard.remote.reading.rows import VIEWS, of_view
from tfyard.views.pods import PodView
from tfyard.views.program import waits_for

TICK = 0.1
RECONNECTS = 60.0
"""Seconds within which a watch that cannot connect tries again."""
MOST_WAITING = 200
"""Events that are kept for a slow reader before the tails wait for it."""
_PODS = Kind(PodView)


async def follow(
    access: Access, tfjob: StoredTFJob, wanted: LogSelection, pace: TailPace = DEFAULT_PACE
) -> AsyncIterator[LogEvent | WaitResult | None]:
    """Events, None every tenth of a second, so that output can be flushed, and at last the verdict."""
    async with Client(access) as client:
        following = Following(client, tfjob, wanted, pace)
        try:
            with explained(tfjob.namespace, VIEW):
                async for event in following.run():
                    yield event
        finally:
            await following.close()


class Following:
    def __init__(self, client: Client, tfjob: StoredTFJob, wanted: LogSelection, pace: TailPace) -> None:
        self._client, self._tfjob, self._wanted = client, tfjob, wanted
        self._world = JobPods(client, tfjob.namespace, self._show, pace)
        self._shown: list[LogEvent] = []
        self._job: JobSummary | None = tfjob.summary
        self._tails: dict[Start, asyncio.Task[None]] = {}
        self._watches: list[asyncio.Task[None]] = []
        self._told = self._why = ""
        self._why_since = 0.0
        self._is_listed = asyncio.Event()

    async def run(self) -> AsyncIterator[LogEvent | WaitResult | None]:
        self._watches = [asyncio.create_task(self._watch_job()), asyncio.create_task(self._watch_pods())]
        while (verdict := self._verdict()) is None:
            self._look()
            for event in self._taken():
                yield event
            await self._world.change(TICK)
        await self._list_pods()
        self._look()
        async for _ in self._drain():
            for event in self._taken():
                yield event
        self._tell_unread()
        for event in self._taken():
            yield event
        yield verdict

    def _show(self, event: LogEvent) -> None:
        self._shown.append(event)
        if len(self._shown) == MOST_WAITING:
            self._world.room.clear()
            self._world.notify()

    def _taken(self) -> list[LogEvent | None]:
        """Events that were shown since the last call, and None."""
        shown, self._shown = self._shown, []
        self._world.room.set()
        return [*shown, None]

    async def close(self) -> None:
        tasks = [*self._watches, *self._tails.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _verdict(self) -> WaitResult | None:
        if self._job is None:
            return waiting.deleted(self._tfjob.name)
        return waiting.verdict(self._job, "succeeded")

    def _look(self) -> None:
        """Starts tails for programs that have started since, and raises errors of watches and tails."""
        for task in (*self._watches, *self._tails.values()):
            if task.done() and not task.cancelled() and (problem := task.exception()):
                raise problem
        if not self._is_listed.is_set():
            return
        for pod in list(self._world.pods.values()):
            for start in self._starts(pod):
                if self._wanted.includes(start) and start not in self._tails:
                    self._begin(pod, start)
        self._tell_waiting()

    def _starts(self, pod: PodView) -> list[Start]:
        """Starts whose logs can be read; those before the present one only if they are asked for, and those of
        init containers only if they failed."""
        now = pod_starts.present(pod)
        known = [start_of(each) for each in pod_starts.endings(pod)] if self._wants_earlier else []
        is_read = pod_starts.has_log(pod) and (not now.container or pod_starts.is_over(pod, now))
        return [*(start for start in known if start < now), *([now] if is_read else [])]

    @property
    def _wants_earlier(self) -> bool:
        return self._wanted.all_attempts or self._wanted.attempt is not None

    def _tell_stored(self) -> None:
        """Shows what the status has about starts whose logs are gone."""
        kept = {start for pod in self._world.pods.values() for start in self._starts(pod)}
        for each in self._status.endings:
            if self._wants_earlier and self._wanted.includes(start_of(each)) and start_of(each) not in kept:
                self._show(remarks.stored(start_of(each), each))

    def _begin(self, pod: PodView, start: Start) -> None:
        earlier = [each for each in self._tails if each.task == start.task]
        tail = Tail(
            self._world, pod, start, self._wanted if not earlier else LogSelection(tasks=self._wanted.tasks)
        )
        after = self._tails[max(earlier)] if earlier else None
        self._tails[start] = asyncio.create_task(self._read(tail, start, after))

    async def _read(self, tail: Tail, start: Start, after: asyncio.Task[None] | None) -> None:
        """Reads one start of a task after the other, so that its lines are in their order."""
        if after:
            await asyncio.wait([after])
            self._show(remarks.restarted(start, self._before(start)))
        if start.container:
            self._show(remarks.of_init_container(start, self._ending(start)))
        await tail.follow()
        if ending := self._ending(start):
            self._show(remarks.ended(start, ending))

    def _before(self, start: Start) -> Ending | None:
        known = (*self._status.endings, *self._world.endings.values())
        earlier = [each for each in known if each.task == start.task and start_of(each) < start]
        return max(earlier, key=start_of, default=None)

    def _ending(self, start: Start) -> Ending | None:
        known = {start_of(each): each for each in self._status.endings} | self._world.endings
        return known.get(start)

    @property
    def _status(self) -> Status:
        return self._job.status if self._job else Status()

    # --- what it waits for

    def _tell_waiting(self) -> None:
        """Shows what tasks wait for, once per reason, if it lasts."""
        now = asyncio.get_running_loop().time()
        text = remarks.waiting(self._status, self._unstarted(), len(self._wanted.tasks))
        why = text.partition(": ")[2]
        if why != self._why:
            self._why, self._why_since = why, now
        if not why or (why != self._told and now - self._why_since >= self._world.pace.patience):
            self._told = why
            if why:
                self._show(Remark(kind="waiting", text=text))

    def _unstarted(self) -> dict[str, str]:
        begun = {start.task for start in self._tails if not start.container}
        pods = {pod.task: waits_for(pod) for pod in self._world.pods.values()}
        return {task: pods.get(task, "") for task in self._wanted.tasks if task not in begun}

    # --- the end

    async def _drain(self) -> AsyncIterator[None]:
        """Reads the logs of ended tasks to their end; tasks that outlive the job, such as servers, are left."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._world.pace.grace
        while open_ := [start for start, task in self._tails.items() if not task.done()]:
            if loop.time() > end and not any(self._world.is_over(start) for start in open_):
                for start in open_:
                    self._show(
                        Remark(kind="running", text="still runs after the end of the job", start=start)
                    )
                return
            self._look()
            yield
            await self._world.change(TICK)
        self._look()

    def _tell_unread(self) -> None:
        """Shows tasks whose pods were gone before their logs could be read."""
        begun = {start.task for start in self._tails}
        for task in self._wanted.tasks:
            if task not in begun:
                known = [each for each in self._status.endings if each.task == task]
                last = max(known, key=start_of, default=None)
                told = fate(self._tfjob, self._status, task)
                if last and not told:
                    self._show(remarks.stored(start_of(last), last))
                else:
                    self._show(remarks.gone(Start(task), told))

    # --- watching

    async def _watch_job(self) -> None:
        meta = self._tfjob.manifest["metadata"]
        of = requests.selecting(fields={"metadata.name": self._tfjob.name})
        path = self._tfjob.resource.path(self._tfjob.namespace)
        async for event in watch(self._client, VIEWS, path, of, self._watching()):
            jobs = event.items if isinstance(event, Snapshot) else [event.object]
            same = [job for job in jobs if job.metadata.uid == meta["uid"]]
            is_gone = isinstance(event, Removed) or not same
            self._job = None if is_gone else of_view(same[0])
            self._world.notify()

    async def _watch_pods(self) -> None:
        async for event in watch(self._client, _PODS, *self._pods(), self._watching()):
            match event:
                case Snapshot(items):
                    self._snapshot(items)
                case Changed(pod) if pod.is_of(self._tfjob.uid):
                    self._world.note(pod)
                case Removed(pod):
                    self._world.note(pod)
                    self._world.pods.pop(pod.metadata.uid, None)
            self._world.notify()

    async def _list_pods(self) -> None:
        """Lists the pods after the end of the job: the watch on them may be a moment behind."""
        if not self._is_listed.is_set():
            self._snapshot((await list_all(self._client, _PODS, *self._pods())).items)
            return
        with suppress(TimeoutError, KubeError):
            async with asyncio.timeout(self._world.pace.grace):
                self._snapshot((await list_all(self._client, _PODS, *self._pods())).items)

    def _snapshot(self, pods: list[PodView]) -> None:
        self._world.pods.clear()
        for pod in pods:
            if pod.is_of(self._tfjob.uid):
                self._world.note(pod)
        if not self._is_listed.is_set():
            self._wanted = since_restart(self._wanted, self._world.pods.values())
            self._is_listed.set()
            self._tell_stored()

    def _watching(self) -> WatchOptions:
        again = f"the job may run on: `tfyard logs -f {self._tfjob.name}` follows it when the server is back"
        return WatchOptions(on_interrupt=Outage(self._world.pace.outage, again).note)

    def _pods(self) -> tuple[Any, Any]:
        of = requests.selecting(labels={JOB_NAME: self._tfjob.name})
        return requests.PODS.path(self._tfjob.namespace), of


class Outage:
    """Ends a watch whose server is away for too long. Forbidden is final if it comes first; later, a server that
    restarts may forbid for a while."""

    def __init__(self, longest: float, again: str) -> None:
        self._longest, self._again = longest, again
        self._is_first = True
        self._since = self._last = -math.inf

    def note(self, problem: KubeError | None) -> None:
        if self._is_first and isinstance(problem, Forbidden):
            raise problem
        self._is_first = False
        now = time.monotonic()
        if problem is None or now - self._last > RECONNECTS:  # it was connected in between
            self._since = now
        self._last = now
        if now - self._since > self._longest:
            raise TfyardError(f"{problem}; there was no answer for {duration(self._longest)}; {self._again}")
