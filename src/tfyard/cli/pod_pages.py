"""Pages that pods serve: of a Deployment that stays, or of a helper pod that goes with the page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tfyard.cli import target
from tfyard.cli.web_session import Page, page, stop
from tfyard.kube import Client, KubeError, requests
from tfyard.overview.objects import Pod
from tfyard.remote import helper_pods
from tfyard.remote.forwarding import Port
from tfyard.remote.helper_pods import CONTAINER, LABEL, Helper
from tfyard.remote.pod_follow import Choice, PodFollow, PodReach


@asynccontextmanager
async def beside(client: Client, choice: Choice, title: str, port: Port) -> AsyncIterator[Page]:
    """Of pods that are replaced when they end."""
    pods = PodFollow(client, choice, target.say)
    async with _page(client, pods, title, port, asyncio.ensure_future(_watched(pods))) as made:
        yield made


@asynccontextmanager
async def in_helper(client: Client, helper: Helper, title: str, port: Port) -> AsyncIterator[Page]:
    async with helper_pods.running(client, helper, target.say) as name:

        def fits(pod: Pod) -> bool:
            return pod.name == name

        choice = Choice(title, helper.namespace, {LABEL: helper.purpose}, fits)
        pods = PodFollow(client, choice, target.say)
        async with _page(client, pods, title, port, asyncio.ensure_future(_ended(client, pods))) as made:
            yield made


@asynccontextmanager
async def _page(
    client: Client, pods: PodFollow, title: str, port: Port, over: "asyncio.Future[str]"
) -> AsyncIterator[Page]:
    try:
        async with page(title, PodReach(client, pods), port, over) as made:
            yield made
    finally:
        await stop(over)


async def _watched(pods: PodFollow) -> str:
    await pods.watch()
    return ""


async def _ended(client: Client, pods: PodFollow) -> str:
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


async def _last_words(client: Client, namespace: str, pod: str) -> str:
    """Why it ended, such as an image without the program."""
    query = {"container": CONTAINER, "tailLines": "5"}
    try:
        async with client.stream(
            requests.get(requests.PODS.path(namespace, pod, "log"), query), 10.0
        ) as chunks:
            return b"".join([chunk async for chunk in chunks]).decode(errors="replace").strip()
    except KubeError as problem:
        return f"its pod has gone: {problem}"
