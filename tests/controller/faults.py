"""What goes wrong, on purpose: clients that die at a chosen write, processes that are killed, and a chronicle
of every pod that ever was."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from tests.controller.cluster import Bench, install
from tfyard.controller.operator import Operator, OperatorSettings
from tfyard.kube import Access, Changed, Client, Kind, Request, Resource, Snapshot, requests, watch
from tfyard.kube.requests import TFJOBS
from tfyard.kube.transport import ANYTHING
from tfyard.testing import ControlPlane, Pod, ScriptedKubelet, eventually
from tfyard.testing.script import Scripts
from tfyard.testing.scripted import UNTIL_TOLD

When = Literal["before", "after"]
ATTEMPT = "tfyard.dev/attempt"


def is_write(request: Request) -> bool:
    return request.method != "GET"


class Counting(Client):
    """A client that remembers what it was asked to send."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self.sent: list[Request] = []

    @property
    def writes(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.sent if is_write(request)]

    @property
    def reads(self) -> int:
        """Lists, mostly: watches are not sent but streamed."""
        return len(self.sent) - len(self.writes)

    async def read(self, request: Request) -> bytes:
        self.sent.append(request)
        return await super().read(request)


class Mortal(Counting):
    """A client that dies with its process, right before or right after its `number`-th write: from then on
    nothing is sent, and nobody gets an answer."""

    def __init__(self, access: Access, number: int, when: When) -> None:
        super().__init__(access)
        self._number, self._when = number, when
        self.dead = asyncio.Event()

    async def send(self, request: Request, into: Any = ANYTHING) -> Any:
        if self.dead.is_set():
            await asyncio.Event().wait()
        if not is_write(request):
            return await super().send(request, into)
        fatal = len(self.writes) + 1 == self._number
        if fatal and self._when == "before":
            await self._die()
        answer = await super().send(request, into)
        if fatal:
            await self._die()
        return answer

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()


class Meddled(Client):
    """A client between whose request and answer something happens: `meddle` is called after the server acted
    and before we hear of it."""

    def __init__(self, access: Access, meddle: Callable[[Request], Awaitable[None]]) -> None:
        super().__init__(access)
        self._meddle = meddle

    async def send(self, request: Request, into: Any = ANYTHING) -> Any:
        answer = await super().send(request, into)
        await self._meddle(request)
        return answer


class Chronicle:
    """Every pod that was ever seen in a namespace, and which attempt at its task it was."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, int]] = {}
        self.begun = asyncio.Event()

    def note(self, pod: Pod) -> None:
        self.pods[pod.metadata.uid] = (pod.metadata.name, int(pod.metadata.annotations.get(ATTEMPT, "0")))

    @property
    def attempts(self) -> Counter[tuple[str, int]]:
        return Counter(self.pods.values())

    @property
    def twice(self) -> list[tuple[str, int]]:
        return [attempt for attempt, count in self.attempts.items() if count > 1]


async def _follow(client: Client, namespace: str, chronicle: Chronicle) -> None:
    async for news in watch(client, Kind(Pod), requests.PODS.path(namespace)):
        if isinstance(news, Snapshot):
            for pod in news.items:
                chronicle.note(pod)
            chronicle.begun.set()
        elif isinstance(news, Changed):
            chronicle.note(news.object)


class Stage(Bench):
    """A namespace with a kubelet and a chronicler, and no operator yet."""

    chronicle: Chronicle

    async def seen(self, wanted: int | set[tuple[str, int]]) -> None:
        """There were so many pods, or these attempts, and no others: the chronicler hears of them a little later
        than the operator."""

        async def look() -> None:
            found = self.chronicle.pods
            assert (len(found) if isinstance(wanted, int) else set(found.values())) == wanted

        await eventually(look)


async def evict(scene: Stage, pod: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = requests.PODS.path(scene.namespace, pod, "eviction")
    await scene.client.send(requests.create(path, eviction))


@asynccontextmanager
async def stage(
    plane: ControlPlane, namespace: str, script: Scripts = UNTIL_TOLD, nodes: int = 1
) -> AsyncIterator[Stage]:
    async with plane.client() as client, plane.client() as other:
        await install(client)
        async with ScriptedKubelet(other, script, namespace, nodes) as kubelet:
            made = Stage(client, namespace, kubelet)
            made.chronicle = Chronicle()
            following = asyncio.create_task(_follow(other, namespace, made.chronicle))
            try:
                await made.chronicle.begun.wait()
                yield made
            finally:
                await end(following)


async def end(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@asynccontextmanager
async def operator_with(
    client: Client, *namespaces: str, jobs: Iterable[Resource] = (TFJOBS,), **settings: Any
) -> AsyncIterator[Operator]:
    """An operator that uses this very client, gone without a word at the end."""
    async with client:
        operator = Operator(client, OperatorSettings(namespaces=namespaces, **settings), jobs)
        running = asyncio.create_task(operator.run())
        try:
            yield operator
        finally:
            await end(running)


async def live_and_die(access: Access, namespace: str, number: int, when: When, done: asyncio.Event) -> bool:
    """One operator's life; True if it died at that write, False if `done` came first."""
    client = Mortal(access, number, when)
    async with operator_with(client, namespace):
        waiting = [asyncio.create_task(client.dead.wait()), asyncio.create_task(done.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            await end(task)
    return client.dead.is_set()


class OperatorProcess:
    """The real command, which can be killed and stopped."""

    def __init__(
        self, kubeconfig: Path, namespace: str, log: Path, *options: str, python: str = sys.executable
    ) -> None:
        command = [python, "-m", "tfyard", "operator", f"--kubeconfig={kubeconfig}"]
        command += [f"--namespaces={namespace}", "--bind=127.0.0.1:0", *options]
        self._log = log.open("ab")
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)
