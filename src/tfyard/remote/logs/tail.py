"""One start of one task: its log from where it was last read, until it is over.

A followed log may end or fall silent for many reasons that are not the end of the program: a restarted API server
or kubelet, an idle connection that was cut, a rotation. So the log is asked for again from the last line on, and
is over only if the pod said so before it was read to its end.
"""

import asyncio
import random
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Client, Forbidden, KubeError, NotFound, Refused, Transient, Unauthorized, requests
from tfyard.logs import remarks
from tfyard.logs.lines import LogEvent, LogSelection, Remark, Start
from tfyard.logs.position import Gone, LogPosition, stamp
from tfyard.logs.splitting import Splitter, new_lines
from tfyard.model import Ending
from tfyard.model.backoff import Backoff
from tfyard.remote.logs import pod_starts
from tfyard.views.pods import PodView


class TailPace(Struct, frozen=True):
    """Durations in seconds."""

    idle: float = 60.0
    """A log that is silent for longer is asked for again: its connection may be dead, its follower stuck."""
    settle: float = 5.0
    """How long a pod's status may lag behind its log."""
    grace: float = 5.0
    """How long a task is followed that still runs after the job."""
    patience: float = 2.0
    """How long tasks may wait for one reason before it is shown."""
    outage: float = 300.0
    """How long the server may be away: a control plane is upgraded in minutes; one that has moved stays away."""
    backoff: Backoff = Backoff(first=0.2, longest=5.0, jitter=0.5)


DEFAULT_PACE = TailPace()


class JobPods:
    """What all tails of a job share: its pods as they are, and how their programs ended."""

    def __init__(
        self, client: Client, namespace: str, show: Callable[[LogEvent], None], pace: TailPace
    ) -> None:
        self.client, self.namespace, self.show, self.pace = client, namespace, show, pace
        self.pods: dict[str, PodView] = {}
        """Pods by uid: a task's next pod has the same name."""
        self.endings: dict[Start, Ending] = {}
        self._attempts: dict[str, dict[str, int]] = {}
        """Task -> uid of its pod -> attempt."""
        self.has_read = False
        self._troubled: set[Start] = set()
        self._changed = asyncio.Event()
        self.room = asyncio.Event()
        """Cleared while more was shown than its reader has taken: tails wait, so memory stays bounded."""
        self.room.set()

    def note(self, pod: PodView) -> None:
        pod = pod_starts.with_attempt(pod, self._attempt(pod))
        self.pods[pod.metadata.uid] = pod
        for each in pod_starts.endings(pod):
            self.endings[pod_starts.start_of(each)] = each

    def _attempt(self, pod: PodView) -> int:
        """Each pod has an attempt of its own: if one is deleted and gone at once, the operator only sees that none
        is left, and gives the next one the same number; other operators give none."""
        known, uid = self._attempts.setdefault(pod.task, {}), pod.metadata.uid
        if uid not in known:
            known[uid] = max(pod_starts.present(pod).attempt, 1 + max(known.values(), default=0))
        return known[uid]

    def notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return

    def is_over(self, start: Start) -> bool:
        same = [pod for pod in self.pods.values() if _is_of(pod, start)]
        return not same or pod_starts.is_over(same[0], start)

    def report(self, start: Start, problem: KubeError | None) -> None:
        """Shows a problem once for all tails: when the first cannot be read, and when all can again."""
        if problem and not self._troubled:
            self.show(Remark(kind="connection", text=f"connection lost, trying again: {problem}"))
        elif problem is None and self._troubled == {start}:
            self.show(Remark(kind="connection", text="connected again"))
        (self._troubled.add if problem else self._troubled.discard)(start)


class Tail:
    def __init__(self, world: JobPods, pod: PodView, start: Start, wanted: LogSelection) -> None:
        self._world, self._start, self._uid = world, start, pod.metadata.uid
        self._request = pod_starts.first_request(pod, start, wanted)
        self._position = LogPosition(is_cut=wanted.tail is not None)
        self._backoff = world.pace.backoff
        self._is_after_gap = False
        self._is_whole = False
        """Whether the last answer came to its end."""

    async def follow(self) -> None:
        while pod := self._world.pods.get(self._uid):
            if pod_starts.restarts(pod, self._start) > self._start.restart + 1:
                self._miss("the kubelet keeps the last two runs of a container")
                return
            is_over = pod_starts.is_over(pod, self._start)
            if await self._ask(pod, is_over) and is_over:
                if self._position.is_expecting:
                    self._miss("the log was rotated")
                return
        if not self._is_whole:
            self._miss("the pod was deleted")

    async def _ask(self, pod: PodView, is_over: bool) -> bool:
        """Asks for the log; whether the answer came to its end."""
        try:
            await self._stream(pod, is_over)
            self._is_whole = True
            if not is_over:
                await self._settle()
            return True
        except Gone:
            self._is_whole = False
            await self._settle()
            self._is_after_gap = not self._is_over_now()
        except NotFound:
            await self._settle()
            await self._forget_if_deleted(pod)
        except Refused as problem:
            await self._refused(problem)
        except Transient as problem:
            self._is_whole = False
            await self._pause(problem)
        return False

    async def _stream(self, pod: PodView, is_over: bool) -> None:
        previous = pod_starts.restarts(pod, self._start) > self._start.restart
        request = replace(self._request, previous=previous, follow=not is_over)
        if since := self._position.reopen(after_gap=self._is_after_gap):
            request = replace(request, since=since, tail=None)
        splitter = Splitter()
        async with self._world.client.stream(
            request.at(self._world.namespace), self._world.pace.idle
        ) as chunks:
            self._world.has_read = True
            self._world.report(self._start, None)
            async for chunk in chunks:
                self._take(splitter.feed(chunk))
                await self._world.room.wait()
        if is_over:  # else it may be half a line
            self._take(splitter.close())

    def _take(self, lines: list[bytes]) -> None:
        before = self._position.last
        events = new_lines(self._start, self._position, lines)
        if events and self._is_after_gap and self._position.last > before:
            self._is_after_gap = False
            first = next(stamp(line) for line in lines if stamp(line) > before)
            self._world.show(remarks.rotated(self._start, before, first))
        for event in events:
            self._backoff = self._world.pace.backoff
            self._world.show(event)

    async def _forget_if_deleted(self, pod: PodView) -> None:
        """A list that was answered late may bring back a pod that the watch has already removed."""
        path = requests.PODS.path(self._world.namespace, pod.name)
        try:
            is_gone = (await self._world.client.send(requests.get(path)))["metadata"]["uid"] != self._uid
        except NotFound:
            is_gone = True
        except (Refused, Transient):
            is_gone = False  # not known now
        if is_gone:
            self._world.pods.pop(self._uid, None)
        else:
            self._backoff = self._backoff.next()
            await self._world.change(self._backoff.delay(random.random()))

    async def _settle(self) -> None:
        """Waits until the pod shows that this start is over, as long as its status may lag behind."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._world.pace.settle
        while not self._is_over_now() and (left := end - loop.time()) > 0:
            await self._world.change(left)

    def _is_over_now(self) -> bool:
        pod = self._world.pods.get(self._uid)
        return pod is None or pod_starts.is_over(pod, self._start)

    async def _refused(self, problem: Refused) -> None:
        """After an answer, 401 and 403 come from a server that restarts; 400: the container is not ready."""
        is_fatal = isinstance(problem, Forbidden | Unauthorized) and not self._world.has_read
        if is_fatal:
            raise problem
        self._backoff = self._backoff.next()
        await self._world.change(self._backoff.delay(random.random()))

    async def _pause(self, problem: Transient) -> None:
        if isinstance(problem.__cause__, TimeoutError):
            return
        self._world.report(self._start, problem)
        self._backoff = self._backoff.next()
        await asyncio.sleep((problem.retry_after or 0.0) + self._backoff.delay(random.random()))

    def _miss(self, why: str) -> None:
        self._world.show(remarks.missed(self._start, self._position.last, why))


def _is_of(pod: PodView, start: Start) -> bool:
    now = pod_starts.present(pod)
    return (now.task, now.attempt) == (start.task, start.attempt)
