"""Times of changes in the cluster, as seen by a watch."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from tfyard.kube import Changed, Client, Kind, Removed, Snapshot, watch

PATIENCE, EVERY = 120.0, 5.0
"""Seconds without any change after which a measurement is given up, and between two lines about its progress."""


class Stalled(Exception):
    """The operator does nothing any more."""


class Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class Status(Struct, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] | None = None


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str = ""


class View(Struct, frozen=True):
    """The few fields of a pod or a TFJob that are counted."""

    metadata: Meta
    status: Status = Status()

    @property
    def has_succeeded(self) -> bool:
        """Whether a pod has succeeded by its phase, or a TFJob of any operator by its condition."""
        conditions = self.status.conditions or ()
        marked = any(c.type == "Succeeded" and c.status == "True" for c in conditions)
        return marked or self.status.phase == "Succeeded"


class Follower:
    """The times at which each object was first seen, seen running, and seen to have succeeded."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.seen: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.succeeded: dict[str, float] = {}
        self._news = asyncio.Event()

    async def follow(self, client: Client, path: str) -> None:
        async for change in watch(client, Kind(View), path):
            now = time.monotonic()
            match change:
                case Snapshot(items):
                    for view in items:
                        self._note(view, now)
                case Changed(view):
                    self._note(view, now)
                case Removed():
                    pass
            self._news.set()

    async def reach(self, moments: dict[str, float], number: int, what: str) -> float:
        """Wait until there are so many moments; returns the last one. Raises `Stalled` if no more come."""
        told = time.monotonic()
        while len(moments) < number:
            self._news.clear()
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait()
            except TimeoutError:
                text = f"only {len(moments)} of {number} {what}, and nothing new for {PATIENCE:.0f} s"
                raise Stalled(text) from None
            if time.monotonic() - told > EVERY:
                told = time.monotonic()
                print(f"  {len(moments)} of {number} {what}", file=sys.stderr, flush=True)
        return max(moments.values(), default=0.0)

    def _note(self, view: View, now: float) -> None:
        name = view.metadata.name
        if not name.startswith(self._prefix):
            return
        self.seen.setdefault(name, now)
        if view.status.phase == "Running":
            self.running.setdefault(name, now)
        if view.has_succeeded:
            self.succeeded.setdefault(name, now)


@asynccontextmanager
async def following(client: Client, path: str, prefix: str = "") -> AsyncIterator[Follower]:
    """Follow the objects whose names begin with `prefix`."""
    follower = Follower(prefix)
    task = asyncio.create_task(follower.follow(client, path))
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.wait([task])


def lags(pods: Follower, jobs: Follower) -> list[float]:
    """Seconds of each job from the end of the pod that decides it (worker 0) to its success."""
    ends = {job: pods.succeeded[f"{job}-worker-0"] for job in jobs.succeeded}
    return sorted(max(0.0, jobs.succeeded[job] - when) for job, when in ends.items())
