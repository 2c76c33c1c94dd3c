"""What pods serve, and TensorBoard of this machine, at a port here: pages, and ports of tasks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.remote.forwarding import HOST, Forwarding, Port, Reach, Say, listening

if TYPE_CHECKING:
    from tfyard.kube import Client
    from tfyard.remote.helper_pods import Helper
    from tfyard.remote.jobs import Found
    from tfyard.remote.pod_follow import Choice, PodFollow

LONGEST_START = 180.0
"""Seconds until a page must answer: TensorFlow alone takes ten to import."""
LOOK_EVERY, LONGEST_ANSWER = 0.5, 30.0


class Here(Struct, frozen=True):
    port: Port
    """Without a local one: the same as there, or any that is free if that is taken."""
    say: Say


class Page(Struct):
    title: str
    forwarding: Forwarding
    over: "asyncio.Future[str]"
    """Why it has ended by itself."""
    answers: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.forwarding.bound[0].local}/"


@asynccontextmanager
async def page(title: str, reach: Reach, here: Here, over: "asyncio.Future[str]") -> AsyncIterator[Page]:
    """That nothing listens is no news before it has answered once."""
    answers = asyncio.Event()
    made = Forwarding(reach, lambda text: here.say(text) if answers.is_set() else None)
    try:
        await _listen(made, here.port)
        yield Page(title, made, over, answers)
    finally:
        await made.close()
        await stop(over)


async def _listen(made: Forwarding, port: Port) -> None:
    try:
        await made.listen(Port(port.remote, port.local or port.remote))
    except TfyardError:
        if port.local:
            raise
        await made.listen(port)


async def stop(work: "asyncio.Future[Any]") -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


# --- of pods


@asynccontextmanager
async def beside(client: "Client", choice: "Choice", title: str, here: Here) -> AsyncIterator[Page]:
    """Of pods that are replaced when they end."""
    from tfyard.remote.pod_follow import PodFollow, PodReach

    pods = PodFollow(client, choice, here.say)
    watching = asyncio.ensure_future(_watched(pods))
    async with page(title, PodReach(client, pods), here, watching) as made:
        yield made


@asynccontextmanager
async def in_helper(client: "Client", helper: "Helper", title: str, here: Here) -> AsyncIterator[Page]:
    """Of a helper pod that goes with the page."""
    from tfyard.remote import helper_pods
    from tfyard.remote.pod_follow import Choice, PodFollow, PodReach

    async with helper_pods.running(client, helper, here.say) as name:
        labels = {helper_pods.LABEL: helper.purpose}
        choice = Choice(title, helper.namespace, labels, lambda pod: pod.name == name)
        pods = PodFollow(client, choice, here.say)
        ending = asyncio.ensure_future(_ended(client, pods))
        async with page(title, PodReach(client, pods), here, ending) as made:
            yield made


async def _watched(pods: "PodFollow") -> str:
    await pods.watch()
    return ""


async def _ended(client: "Client", pods: "PodFollow") -> str:
    """What a helper said last, once its program has ended."""
    watching = asyncio.create_task(pods.watch())
    ending = asyncio.create_task(pods.until_over())
    try:
        await asyncio.wait([watching, ending], return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        return await _last_words(client, pods.choice.namespace, ending.result().name)
    finally:
        await stop(watching)
        await stop(ending)


async def _last_words(client: "Client", namespace: str, pod: str) -> str:
    """Why it ended, such as an image without the program."""
    from tfyard.kube import KubeError, requests
    from tfyard.remote.helper_pods import CONTAINER

    asking = requests.get(
        requests.PODS.path(namespace, pod, "log"), {"container": CONTAINER, "tailLines": "5"}
    )
    try:
        async with client.stream(asking, 10.0) as chunks:
            return b"".join([chunk async for chunk in chunks]).decode(errors="replace").strip()
    except KubeError as problem:
        return f"its pod has gone: {problem}"


# --- ports of a task


@asynccontextmanager
async def task_ports(
    client: "Client", found: "Found", task: str, ports: Sequence[Port], say: Say
) -> AsyncIterator[tuple[Forwarding, "asyncio.Future[None]"]]:
    """Each connection goes to the pod that the task has when it comes. The future ends with what keeps us from
    knowing that pod."""
    from tfyard.remote.pod_follow import PodFollow, PodReach, of_task

    pods = PodFollow(client, of_task(found, task), say)
    watching = asyncio.ensure_future(pods.watch())
    try:
        async with listening(PodReach(client, pods), ports, say) as made:
            yield made, watching
    finally:
        await stop(watching)


# --- until there is something to see


async def until_answered(each: Page) -> None:
    """By HTTP: a port may be open before there is anything to see. Raises if it never answers."""
    end = asyncio.get_running_loop().time() + LONGEST_START
    while not await _answers_while_it_lasts(each):
        if each.forwarding.refusal.done():
            raise each.forwarding.refusal.result()
        if each.over.done():
            raise TfyardError(f"{each.title} has ended: {each.over.result()}")
        if asyncio.get_running_loop().time() > end:
            why = f": {each.forwarding.trouble}" if each.forwarding.trouble else ""
            raise TfyardError(f"{each.title} does not answer after {LONGEST_START:.0f} s{why}")
        await asyncio.sleep(LOOK_EVERY)
    each.answers.set()


async def _answers_while_it_lasts(each: Page) -> bool:
    asking = asyncio.ensure_future(_answers(each.forwarding.bound[0].local))
    either: set[asyncio.Future[Any]] = {asking, each.over}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return asking.done() and asking.result()
    finally:
        await stop(asking)


async def _answers(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    try:
        writer.write(f"GET / HTTP/1.0\r\nHost: {HOST}:{port}\r\n\r\n".encode())
        async with asyncio.timeout(LONGEST_ANSWER):
            return (await reader.read(5)).startswith(b"HTTP/")
    except OSError:
        return False
    finally:
        writer.transport.abort()
