"""Measures how long one tenant's pod waits while another tenant's are admitted slowly."""

import asyncio
import time

from following import following
from process import started
from scenarios import fresh_cluster

from tests.controller.cluster import tfjob
from tests.controller.slow_proxy import slow_proxy
from tfyard.controlplane.components import reserve_port
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import builders

SLOW_JOBS, REPLICAS, DELAY = 8, 100, 3.0
"""Jobs of the slow tenant, their replicas, and seconds until each of its pods is admitted."""
TARGET = 2.0


async def tenants(command: str) -> float:
    """Seconds until the other tenant's only pod exists."""
    async with fresh_cluster() as (plane, slow), plane.client() as client:
        other, config = await builders.create_namespace(client, "other"), plane.folder / "slow.kubeconfig"
        with reserve_port() as reservation:
            port = reservation.getsockname()[1]
        async with slow_proxy(plane.admin, config, DELAY) as proxy:
            proxy.slow_path = f"/namespaces/{slow}/"
            with started(command.format(kubeconfig=config, port=port), plane.folder / "operator.log"):
                for number in range(SLOW_JOBS):
                    job = tfjob(f"slow-{number}", Worker=REPLICAS)
                    await client.send(requests.create(TFJOBS.path(slow), job))
                while proxy.pods < 32:
                    await asyncio.sleep(0.1)
                await asyncio.sleep(DELAY / 2)
                async with following(client, requests.PODS.path(other)) as pods:
                    begin = time.monotonic()
                    await client.send(requests.create(TFJOBS.path(other), tfjob(Worker=1)))
                    await pods.reach(pods.seen, 1, "pods of the other tenant exist")
                    return time.monotonic() - begin
