"""Runs a scenario with an operator, which is known by its command line only."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import upstream
from following import Follower, Stalled, following, lags
from msgspec import Struct
from process import Measured, started
from scenarios import PREFIX, UNREAD, Scenario, fresh_cluster, in_parallel, manifests
from server import Counting, Counts, counts

from tests.controller.cluster import tfjob
from tfyard.controlplane.components import reserve_port
from tfyard.formats.crd.documents import crds
from tfyard.kube import Client, requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, builders

LAST_LINES = 20
"""Lines of an operator's log that are shown if it does nothing."""


class Figures(Struct, frozen=True, kw_only=True):
    pods: float
    done: float
    lag: float
    """Seconds within which 99 of 100 jobs succeeded after the end of the pod that decides them."""
    cpu: float
    server_cpu: float
    """CPU of the apiserver."""
    memory: float
    counts: Counts


class Watched(Struct, frozen=True):
    client: Counting
    namespaces: list[str]
    where: str
    """The namespace that is followed; empty: all."""
    pods: Follower
    jobs: Follower
    process: Measured
    server: Measured


@asynccontextmanager
async def at_work(command: str, plane: ControlPlane) -> AsyncIterator[Measured]:
    with reserve_port() as reservation:
        port = reservation.getsockname()[1]
    filled, log = command.format(kubeconfig=plane.kubeconfig, port=port), plane.folder / "operator.log"
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(plane.client())
        if upstream.NAME in command:
            await stack.enter_async_context(upstream.provided(client))
        process = stack.enter_context(started(filled, log))
        try:
            await warm_up(client)
            yield process
        except Stalled as stalled:
            lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            raise SystemExit("\n".join([f"{filled}: {stalled}; the end of its log:", *lines])) from None


async def warm_up(client: Client) -> None:
    """Run a small job in another namespace: when its pod exists, the operator is up, whatever program it is."""
    namespace = await builders.create_namespace(client, "warm-up")
    async with following(client, requests.PODS.path(namespace)) as pods:
        await client.send(requests.create(TFJOBS.path(namespace), tfjob(Worker=1)))
        await pods.reach(pods.seen, 1, "pods of the first job exist")
    await asyncio.sleep(1)


async def final(client: Client) -> Counts:
    """The counts once the operator writes no more: its later writes count, too."""
    before, now = Counts(), await counts(client)
    while now != before:
        await asyncio.sleep(2)
        before, now = now, await counts(client)
    return now


@asynccontextmanager
async def watched(command: str, scenario: Scenario) -> AsyncIterator[Watched]:
    """A started operator, with followers of pods and jobs."""
    async with AsyncExitStack() as stack:
        own = [upstream.definition()] if upstream.NAME in command else crds(scenario.versions)
        plane, namespace = await stack.enter_async_context(fresh_cluster(*own))
        client = await stack.enter_async_context(Counting(plane.admin))
        more = [await builders.create_namespace(client, "bench") for _ in range(scenario.namespaces - 1)]
        where = "" if more else namespace
        pods = await stack.enter_async_context(following(client, requests.PODS.path(where), PREFIX))
        jobs = await stack.enter_async_context(following(client, TFJOBS.path(where), PREFIX))
        process = await stack.enter_async_context(at_work(command, plane))
        yield Watched(client, [namespace, *more], where, pods, jobs, process, Measured(plane.apiserver.pid))


async def create(scenario: Scenario, world: Watched) -> None:
    """Create all jobs, spread over the namespaces; returns when the server has stored them."""
    targets = zip(itertools.cycle(world.namespaces), manifests(scenario))
    requested = [requests.create(TFJOBS.path(namespace), job) for namespace, job in targets]
    await in_parallel(requested, lambda request: world.client.send(request, UNREAD))


async def operated(command: str, scenario: Scenario, kubelet_first: bool) -> Figures:
    async with watched(command, scenario) as world, AsyncExitStack() as stack:
        client, pods, jobs, process = world.client, world.pods, world.jobs, world.process
        kubelet = ScriptedKubelet(client, Script(run_for=0.0), world.where)
        if kubelet_first:
            await stack.enter_async_context(kubelet)
        server, own = await counts(client), client.counts()
        cpu, server_cpu = process.cpu(), world.server.cpu()
        started = time.monotonic()
        await create(scenario, world)
        exist = await pods.reach(pods.seen, scenario.total, "pods exist")
        if not kubelet_first:
            await stack.enter_async_context(kubelet)
        succeeded = await jobs.reach(jobs.succeeded, scenario.jobs, "jobs have succeeded")
        await pods.reach(pods.succeeded, scenario.total, "pods have succeeded")
        behind = lags(pods, jobs)
        last = await final(client)
        return Figures(
            pods=exist - started,
            done=succeeded - started,
            lag=behind[int(len(behind) * 0.99)],
            counts=last.since(server).since(client.counts().since(own)),
            cpu=process.cpu() - cpu,
            server_cpu=world.server.cpu() - server_cpu,
            memory=process.peak_megabytes(),
        )
