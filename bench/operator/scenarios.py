"""Scenarios, a fresh control plane for each measurement, and helpers of both sides of a comparison."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from process import Measured

from tests.controller.cluster import Manifest, tfjob
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import SERVED
from tfyard.testing import ControlPlane, builders

PARALLEL = 32
PREFIX = "job-"
"""Prefix of the names of all jobs that are measured."""
UNREAD = msgspec.json.Decoder(msgspec.Raw)

T = TypeVar("T")


class Scenario(Struct, frozen=True):
    jobs: int
    replicas: int
    namespaces: int = 1
    versions: tuple[str, ...] = SERVED
    """The versions of TFJob that the cluster serves."""

    def __str__(self) -> str:
        return f"{self.jobs}x{self.replicas}" + (f" in {self.namespaces}" if self.namespaces > 1 else "")

    @property
    def total(self) -> int:
        return self.jobs * self.replicas


@asynccontextmanager
async def fresh_cluster(*definitions: Manifest) -> AsyncIterator[tuple[ControlPlane, str]]:
    """With tfyard's CRD of TFJobs as users have it, or with these."""
    async with ControlPlane() as plane, plane.client() as client:
        await builders.install_crds(client, *(definitions or crds()))
        namespace = await builders.create_namespace(client, "bench")
        await settled(Measured(plane.apiserver.pid))
        yield plane, namespace


async def settled(process: Measured) -> None:
    """Wait until a process is idle: a new server is busy for seconds, which would count for the first scenario."""
    for _ in range(40):
        before = process.cpu()
        await asyncio.sleep(0.5)
        if process.cpu() - before < 0.06:
            return


async def in_parallel(items: Iterable[T], work: Callable[[T], Awaitable[Any]]) -> None:
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


def manifests(scenario: Scenario) -> list[Manifest]:
    return [tfjob(f"{PREFIX}{number}", Worker=scenario.replicas) for number in range(scenario.jobs)]
