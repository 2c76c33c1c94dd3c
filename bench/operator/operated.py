"""A scenario with an operator, known by its command line only."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from box import UNREAD, box, in_parallel, manifests
from following import following, lags
from msgspec import Struct
from process import Measured, started
from server import Counting, Counts, counts

from tests.controller.cluster import tfjob
from tfyard.backends.kubernetes import TFJOBS
from tfyard.controlplane.components import reserve_port
from tfyard.kube import Client, requests
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, builders


class Figures(Struct, frozen=True, kw_only=True):
    pods: float
    done: float
    lag: float
    """Seconds within which 99 of 100 jobs had told the end of the pod that decides them."""
    cpu: float
    memory: float
    counts: Counts


@asynccontextmanager
async def at_work(command: str, plane: ControlPlane) -> AsyncIterator[Measured]:
    with reserve_port() as held:
        port = held.getsockname()[1]
    filled = command.format(kubeconfig=plane.kubeconfig, port=port)
    with started(filled, plane.folder / "operator.log") as process:
        async with plane.client() as client:
            await warm_up(client)
        yield process


async def warm_up(client: Client) -> None:
    """One small job elsewhere: when its pod exists, the operator is up, whatever program it is."""
    namespace = await builders.create_namespace(client, "warm-up")
    async with following(client, requests.PODS.path(namespace)) as pods:
        await client.send(requests.create(TFJOBS.path(namespace), tfjob(Worker=1)))
        await pods.reach(pods.seen, 1)
    await asyncio.sleep(1)


async def final(client: Client) -> Counts:
    """What an operator has to say afterwards counts too: until it says no more."""
    before, now = Counts(), await counts(client)
    while now != before:
        await asyncio.sleep(2)
        before, now = now, await counts(client)
    return now


async def operated(command: str, jobs: int, replicas: int, kubelet_first: bool) -> Figures:
    async with AsyncExitStack() as stack:
        plane, namespace = await stack.enter_async_context(box())
        client = await stack.enter_async_context(Counting(plane.admin))
        pods = await stack.enter_async_context(following(client, requests.PODS.path(namespace)))
        done = await stack.enter_async_context(following(client, TFJOBS.path(namespace)))
        process = await stack.enter_async_context(at_work(command, plane))
        kubelet = ScriptedKubelet(client, Script(run_for=0.0), namespace)
        if kubelet_first:
            await stack.enter_async_context(kubelet)
        server, own, cpu = await counts(client), client.counts(), process.cpu()
        began = time.monotonic()
        requested = [requests.create(TFJOBS.path(namespace), job) for job in manifests(jobs, replicas)]
        await in_parallel(requested, lambda request: client.send(request, UNREAD))
        exist = await pods.reach(pods.seen, jobs * replicas)
        if not kubelet_first:
            await stack.enter_async_context(kubelet)
        succeeded = await done.reach(done.succeeded, jobs)
        await pods.reach(pods.succeeded, jobs * replicas)
        behind = lags(pods, done)
        return Figures(
            pods=exist - began,
            done=succeeded - began,
            lag=behind[int(len(behind) * 0.99)],
            counts=(await final(client)).since(server).since(client.counts().since(own)),
            cpu=process.cpu() - cpu,
            memory=process.peak_megabytes(),
        )
