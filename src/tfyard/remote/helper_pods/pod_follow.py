"""The pod to connect to now, by a watch: a new pod of a task has the same name as the one before."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from msgspec import Struct

from tfyard.errors import NotRunning
from tfyard.kube import (
    Changed,
    Client,
    Forbidden,
    Kind,
    Refused,
    Removed,
    Snapshot,
    Transient,
    Unauthorized,
    list_all,
    pod_streams,
    requests,
    watch,
)
from tfyard.kube.pod_streams import PodConnection
from tfyard.model.callbacks import Say
from tfyard.model.names import JOB_NAME
from tfyard.overview import waiting
from tfyard.overview.waiting import WaitResult
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.rows import VIEWS, of_view
from tfyard.remote.reading.tasks import is_running
from tfyard.views.pods import PodView
from tfyard.views.program import waits_for

PATIENCE = 30.0
"""Seconds that a connection waits for a pod that runs."""
RETRY = 0.5

_PODS = Kind(PodView)


class PodChoice(Struct, frozen=True):
    """Pods of a namespace that are selected, and their name in messages."""

    name: str
    namespace: str
    labels: dict[str, str]
    fits: Callable[[PodView], bool]


def of_task(tfjob: StoredTFJob, task: str) -> PodChoice:
    def fits(pod: PodView) -> bool:
        return pod.task == task and pod.is_of(tfjob.uid)

    return PodChoice(task, tfjob.namespace, {JOB_NAME: tfjob.name}, fits)


async def beside(client: Client, tfjob: StoredTFJob, name: str, labels: dict[str, str]) -> PodChoice | None:
    """Pods with these labels that serve the job, if one of them runs."""
    path, of = requests.PODS.path(tfjob.namespace), requests.selecting(labels=labels)
    pods = (await list_all(client, _PODS, path, of)).items
    return PodChoice(name, tfjob.namespace, labels, is_running) if any(map(is_running, pods)) else None


class PodFollow:
    def __init__(self, client: Client, choice: PodChoice, say: Say) -> None:
        self.choice = choice
        self._client, self._say = client, say
        self._pods: dict[str, PodView] = {}
        self._changed = asyncio.Event()
        self._last = ""

    async def watch(self) -> None:
        """Follows the pods until it is cancelled."""
        choice = self.choice
        path, of = requests.PODS.path(choice.namespace), requests.selecting(labels=choice.labels)
        async for event in watch(self._client, _PODS, path, of):
            match event:
                case Snapshot(items):
                    self._pods = {pod.metadata.uid: pod for pod in items}
                case Changed(pod):
                    self._pods[pod.metadata.uid] = pod
                case Removed(pod):
                    self._pods.pop(pod.metadata.uid, None)
            self._note()

    async def current(self) -> PodView:
        """The pod that runs, or that starts within PATIENCE."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (pod := self._running()) is None:
                    await self._changed.wait()
                return pod
        except TimeoutError:
            known = [pod for pod in self._pods.values() if self.choice.fits(pod)]
            why = f": {waits_for(known[0])}" if known else ": it has no pod"
            raise NotRunning(f"{self.choice.name} is not running{why}") from None

    async def until_over(self) -> PodView:
        """The selected pod, once it has ended or is gone."""
        last: PodView | None = None
        while True:
            fitting = [pod for pod in self._pods.values() if self.choice.fits(pod)]
            if last and (not fitting or fitting[0].is_over):
                return fitting[0] if fitting else last
            last = fitting[0] if fitting else last
            await self._changed.wait()

    def _running(self) -> PodView | None:
        fitting = [pod for pod in self._pods.values() if self.choice.fits(pod) and is_running(pod)]
        return max(fitting, key=_created, default=None)

    def _note(self) -> None:
        pod = self._running()
        if pod and self._last and pod.metadata.uid != self._last:
            self._say(f"{self.choice.name} has a new pod, {pod.name}: new connections go there")
        self._last = pod.metadata.uid if pod else self._last
        self._changed.set()
        self._changed = asyncio.Event()


def _created(pod: PodView) -> str:
    return f"{pod.metadata.creation_timestamp} {pod.name}"


class PodReach:
    """Connects with the pod that runs when a connection is opened."""

    def __init__(self, client: Client, pods: PodFollow) -> None:
        self._client, self._pods = client, pods

    @property
    def name(self) -> str:
        return self._pods.choice.name

    async def connect(self, stack: AsyncExitStack, port: int, tell: Say) -> PodConnection:
        """Tries again: the pod may be deleted, or not listen yet."""
        loop, namespace = asyncio.get_running_loop(), self._pods.choice.namespace
        end = loop.time() + PATIENCE
        while True:
            pod = await self._pods.current()
            try:
                connecting = pod_streams.connect(self._client, namespace, pod.name, port)
                return await stack.enter_async_context(connecting)
            except (Refused, Transient) as problem:
                if isinstance(problem, Forbidden | Unauthorized) or loop.time() > end:
                    raise
                tell(f"{self.name} cannot be reached, trying again: {problem}")
                await asyncio.sleep(RETRY)


async def until_ended(client: Client, tfjob: StoredTFJob) -> WaitResult:
    """Verdict about the job, once it has ended."""
    path, uid = tfjob.resource.path(tfjob.namespace), tfjob.manifest["metadata"]["uid"]
    async for event in watch(client, VIEWS, path, requests.selecting(fields={"metadata.name": tfjob.name})):
        jobs = event.items if isinstance(event, Snapshot) else [event.object]
        same = [job for job in jobs if job.metadata.uid == uid]
        if isinstance(event, Removed) or not same:
            break
        if verdict := waiting.verdict(of_view(same[0]), "finished"):
            return verdict
    return waiting.deleted(tfjob.name)
