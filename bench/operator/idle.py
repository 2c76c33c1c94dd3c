"""Measures what an operator costs when there is nothing to do, with many finished jobs."""

import asyncio

from msgspec import Struct
from operated import at_work
from scenarios import UNREAD, fresh_cluster, in_parallel, settled

from tests.controller.cluster import Manifest, tfjob
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS

WATCHED = 30.0
"""Seconds of the measurement."""


class Idle(Struct, frozen=True, kw_only=True):
    share: float
    """CPU as a share of one core."""
    memory: float


def finished(number: int) -> Manifest:
    return tfjob(f"done-{number}", {"cleanPodPolicy": "None"}, Worker=4)


def success() -> Manifest:
    when = "2026-01-01T00:00:00Z"
    ended = {"type": "Succeeded", "status": "True", "lastTransitionTime": when, "lastUpdateTime": when}
    return {"conditions": [ended], "startTime": when, "completionTime": when}


async def idle(command: str, jobs: int) -> Idle:
    async with fresh_cluster() as (plane, namespace), plane.client() as client:

        async def create_finished(number: int) -> None:
            await client.send(requests.create(TFJOBS.path(namespace), finished(number)), UNREAD)
            path = TFJOBS.path(namespace, f"done-{number}", "status")
            await client.send(requests.patch(path, {"status": success()}), UNREAD)

        await in_parallel(range(jobs), create_finished)
        async with at_work(command, plane) as process:
            await settled(process)
            before = process.cpu()
            await asyncio.sleep(WATCHED)
            return Idle(share=(process.cpu() - before) / WATCHED, memory=process.peak_megabytes())
