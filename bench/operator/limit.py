"""The limit: a bare loop of tfyard's client that makes the same objects without an operator."""

import asyncio
import time
from datetime import UTC, datetime

from following import following
from scenarios import UNREAD, Scenario, fresh_cluster, in_parallel, manifests

from tests.controller.cluster import Manifest
from tfyard import formats, planner
from tfyard.backends.kubernetes.resources import Resources
from tfyard.kube import Client, Request, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model import Create, Observed
from tfyard.testing import builders

RESOURCES = Resources.of([TFJOBS])


def everything(namespace: str, jobs: list[Manifest]) -> list[list[Request]]:
    """Requests for the objects that the planner creates: first jobs and Services, then pods."""
    first = [requests.create(TFJOBS.path(namespace), job) for job in jobs]
    pods = []
    for manifest in jobs:
        named = {**manifest["metadata"], "namespace": namespace, "uid": "0" * 36}
        job = formats.load({**manifest, "metadata": named})
        for action in planner.decide(job, Observed(), planner.Site(), datetime.now(UTC)).actions:
            assert isinstance(action, Create)
            request = requests.create(RESOURCES.of_kind(action.kind).path(namespace), action.manifest)
            (pods if action.kind == "Pod" else first).append(request)
    return [first, pods]


async def bare_loop(scenario: Scenario) -> float:
    """Seconds until all pods exist. The loop is watched as operators are, because watching costs, too."""
    async with fresh_cluster() as (plane, namespace), plane.client() as client:
        elsewhere = await builders.create_namespace(client, "warm-up")
        await make(
            client, everything(elsewhere, manifests(Scenario(1, 2)))
        )  # the first of a kind takes seconds
        turns = everything(namespace, manifests(scenario))
        async with (
            following(client, requests.PODS.path(namespace)) as pods,
            following(client, TFJOBS.path(namespace)),
        ):
            await asyncio.sleep(1)
            started = time.monotonic()
            await make(client, turns)
            return await pods.reach(pods.seen, scenario.total, "pods of the bare loop exist") - started


async def make(client: Client, turns: list[list[Request]]) -> None:
    for turn in turns:
        await in_parallel(turn, lambda request: client.send(request, UNREAD))
