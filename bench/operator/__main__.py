"""What an operator costs: `python bench/operator [--scale 0.1] [COMMAND]`.

COMMAND starts any operator of kubeflow.org/v1 TFJobs, ours by default; `{kubeconfig}` and `{port}` in it are
filled in. Each scenario runs twice, each time on a control plane of its own: once as a bare loop of our client
that makes the same objects with no operator at all, which is the limit, and once with the operator. The kubelet
comes when all pods exist, unless told otherwise: until then the loop and the operator have the machine alone.

A folder and not `bench/operator.py`: scripts see their own folder first, and would take that for the standard
library's `operator`. Ratios are what counts; they are printed, never asserted.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for the tests' small helpers

from process import Measured, started
from server import Counting, Counts, counts

from tests.controller.cluster import Manifest, install, tfjob
from tfyard import formats, planner
from tfyard.backends.kubernetes.runner import RESOURCES
from tfyard.controller.operator import TFJOBS
from tfyard.kube import Changed, Client, Kind, Removed, Request, Snapshot, requests, watch
from tfyard.model import Create, Observed
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, builders
from tfyard.testing.components import reserve_port

OURS = f"{sys.executable} -m tfyard operator --kubeconfig {{kubeconfig}} --no-leader-elect"
OURS += " --bind 127.0.0.1:{port} --log text"
SCENARIOS = ((100, 4), (1, 1000), (1000, 1))
PARALLEL = 32
PATIENCE = 600.0
UNREAD = msgspec.json.Decoder(msgspec.Raw)

T = TypeVar("T")


class Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class Status(Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class Meta(Struct, frozen=True, rename="camel"):
    uid: str
    resource_version: str = ""


class View(Struct, frozen=True):
    """A pod or a TFJob, as little of it as can be counted."""

    metadata: Meta
    status: Status = Status()

    @property
    def has_succeeded(self) -> bool:
        found = self.status.conditions or ()
        return any(c.type == "Succeeded" and c.status == "True" for c in found)


class Tally:
    """Watches a collection and says when enough of it is as wanted."""

    def __init__(self, wanted: Callable[[View], bool]) -> None:
        self._wanted, self._there, self._news = wanted, set[str](), asyncio.Event()

    async def follow(self, client: Client, path: str) -> None:
        async for change in watch(client, Kind(View), path):
            match change:
                case Snapshot(items):
                    self._there.update(item.metadata.uid for item in items if self._wanted(item))
                case Changed(view) if self._wanted(view):
                    self._there.add(view.metadata.uid)
                case Changed() | Removed():
                    pass
            self._news.set()

    async def reach(self, number: int) -> float:
        """When it came to so many."""
        while len(self._there) < number:
            self._news.clear()
            await self._news.wait()
        return time.monotonic()


class Figures(Struct, frozen=True, kw_only=True):
    pods: float
    done: float
    cpu: float
    memory: float
    counts: Counts


class Cost(Struct, frozen=True, kw_only=True):
    """One scenario, both ways."""

    jobs: int
    replicas: int
    limit: float
    figures: Figures

    @property
    def total(self) -> int:
        return self.jobs * self.replicas


async def in_parallel(things: Iterable[T], work: Callable[[T], Awaitable[Any]]) -> None:
    queue = iter(things)

    async def worker() -> None:
        for thing in queue:
            await work(thing)

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


def manifests(jobs: int, replicas: int) -> list[Manifest]:
    return [tfjob(f"job-{number}", Worker=replicas) for number in range(jobs)]


@asynccontextmanager
async def box() -> AsyncIterator[tuple[ControlPlane, str]]:
    async with ControlPlane() as plane, plane.client() as client:
        await install(client)
        namespace = await builders.create_namespace(client, "bench")
        await settled(Measured(plane.apiserver.pid))
        yield plane, namespace


async def settled(apiserver: Measured) -> None:
    """A young apiserver is busy with itself for seconds; whoever comes first would pay for it."""
    for _ in range(40):
        before = apiserver.cpu()
        await asyncio.sleep(0.5)
        if apiserver.cpu() - before < 0.06:
            return


# The limit.


def everything(namespace: str, jobs: list[Manifest]) -> list[list[Request]]:
    """The very objects that our planner asks for, as requests: first the names, then who answers to them."""
    first = [requests.create(TFJOBS.path(namespace), job) for job in jobs]
    pods = []
    for manifest in jobs:
        named = {**manifest["metadata"], "namespace": namespace, "uid": "0" * 36}
        job = formats.load({**manifest, "metadata": named})
        for action in planner.decide(job, Observed(), planner.Site(), datetime.now(UTC)).actions:
            assert isinstance(action, Create)
            request = requests.create(RESOURCES[action.kind].path(namespace), action.manifest)
            (pods if action.kind == "Pod" else first).append(request)
    return [first, pods]


async def bare_loop(jobs: int, replicas: int) -> float:
    async with box() as (plane, namespace), plane.client() as client:
        elsewhere = await builders.create_namespace(client, "warm-up")
        await make(client, everything(elsewhere, manifests(1, 2)))  # the first of a kind takes seconds
        turns = everything(namespace, manifests(jobs, replicas))
        began = time.monotonic()
        await make(client, turns)
        return time.monotonic() - began


async def make(client: Client, turns: list[list[Request]]) -> None:
    for turn in turns:
        await in_parallel(turn, lambda request: client.send(request, UNREAD))


# The operator.


@asynccontextmanager
async def tallied(client: Client, path: str, wanted: Callable[[View], bool]) -> AsyncIterator[Tally]:
    tally = Tally(wanted)
    following = asyncio.create_task(tally.follow(client, path))
    try:
        yield tally
    finally:
        following.cancel()
        await asyncio.wait([following])


async def warm_up(client: Client) -> None:
    """One small job elsewhere: when its pod exists, the operator is up, whatever program it is."""
    namespace = await builders.create_namespace(client, "warm-up")
    async with tallied(client, requests.PODS.path(namespace), lambda _: True) as pods:
        await client.send(requests.create(TFJOBS.path(namespace), tfjob(Worker=1)))
        await pods.reach(1)
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
        with reserve_port() as held:
            port = held.getsockname()[1]
        filled = command.format(kubeconfig=plane.kubeconfig, port=port)
        process = stack.enter_context(started(filled, plane.folder / "operator.log"))
        pods = await stack.enter_async_context(tallied(client, requests.PODS.path(namespace), lambda _: True))
        done = await stack.enter_async_context(
            tallied(client, TFJOBS.path(namespace), lambda view: view.has_succeeded)
        )
        await warm_up(client)
        kubelet = ScriptedKubelet(client, Script(run_for=0.0), namespace)
        if kubelet_first:
            await stack.enter_async_context(kubelet)
        server, own, cpu = await counts(client), client.counts(), process.cpu()
        began = time.monotonic()
        requested = [requests.create(TFJOBS.path(namespace), job) for job in manifests(jobs, replicas)]
        await in_parallel(requested, lambda request: client.send(request, UNREAD))
        exist = await pods.reach(jobs * replicas)
        if not kubelet_first:
            await stack.enter_async_context(kubelet)
        succeeded = await done.reach(jobs)
        theirs = (await final(client)).since(server).since(client.counts().since(own))
        return Figures(
            pods=exist - began,
            done=succeeded - began,
            cpu=process.cpu() - cpu,
            memory=process.peak_megabytes(),
            counts=theirs,
        )


# What is said.

ROWS: tuple[tuple[str, Callable[[Cost], str]], ...] = (
    ("bare loop, s", lambda c: f"{c.limit:.2f}"),
    ("all pods exist, s", lambda c: f"{c.figures.pods:.2f}"),
    ("  ratio to the bare loop", lambda c: f"{c.figures.pods / c.limit:.2f}"),
    ("all succeeded, s", lambda c: f"{c.figures.done:.2f}"),
    ("writes per replica", lambda c: f"{c.figures.counts.writes.total() / c.total:.2f}"),
    (
        "  beyond 1 per replica, per job",
        lambda c: f"{(c.figures.counts.writes.total() - c.total) / c.jobs:.1f}",
    ),
    ("bytes written per replica", lambda c: f"{c.figures.counts.sent / c.total:.0f}"),
    ("CPU, s", lambda c: f"{c.figures.cpu:.2f}"),
    ("peak memory, MB", lambda c: f"{c.figures.memory:.0f}"),
)


def show(costs: list[Cost]) -> None:
    print(f"{'':34}" + "".join(f"{f'{c.jobs}x{c.replicas}':>12}" for c in costs))
    for name, value in ROWS:
        print(f"{name:34}" + "".join(f"{value(cost):>12}" for cost in costs))
    for cost in costs:
        print(f"{cost.jobs}x{cost.replicas} wrote: {dict(cost.figures.counts.writes)}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What an operator costs, beside a bare loop.")
    parser.add_argument("command", nargs="?", default=OURS, help="starts an operator; {kubeconfig}, {port}")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1: a quick look")
    parser.add_argument("--only", type=int, choices=(1, 2, 3), help="one scenario: 100x4, 1x1000, 1000x1")
    parser.add_argument("--kubelet-first", action="store_true", help="pods start while others are made")
    return parser.parse_args()


def scaled(number: int, scale: float) -> int:
    return number if number < 10 else max(1, round(number * scale))


def main() -> int:
    given = parse()
    chosen = [SCENARIOS[given.only - 1]] if given.only else SCENARIOS
    costs = []
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for jobs, replicas in ((scaled(j, given.scale), scaled(r, given.scale)) for j, r in chosen):
        limit = asyncio.run(bare_loop(jobs, replicas))
        running = operated(given.command, jobs, replicas, given.kubelet_first)
        figures = asyncio.run(asyncio.wait_for(running, PATIENCE))
        costs.append(Cost(jobs=jobs, replicas=replicas, limit=limit, figures=figures))
    show(costs)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
