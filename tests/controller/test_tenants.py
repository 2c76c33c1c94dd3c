"""Tenants of one operator: what one of them does, or what is done to its requests, does not affect the others."""

import asyncio
from pathlib import Path

import pytest

from tests.controller.cluster import install, tfjob
from tests.controller.faults import operator_with
from tests.controller.slow_proxy import slow_proxy
from tfyard.backends.kubernetes.runner import PARALLEL_WRITES
from tfyard.kube import Client, kubeconfig, requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = pytest.mark.cluster

SLOW_JOBS, REPLICAS = 8, 60


async def pods(client: Client, namespace: str, at_least: int) -> None:
    items = (await client.send(requests.get(requests.PODS.path(namespace))))["items"]
    assert len(items) >= at_least


async def test_slow_admission_of_one_tenant_does_not_delay_the_pods_of_another(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    async with (
        control_plane.client() as admin,
        slow_proxy(control_plane.admin, config, delay=3.0) as proxy,
    ):
        await install(admin)
        other = await builders.create_namespace(admin)
        proxy.slow_path = f"/namespaces/{namespace}/"
        access = kubeconfig.load({"KUBECONFIG": str(config)})

        async def slow_pods(count: int) -> None:
            assert proxy.pods >= count

        async with operator_with(Client(access), namespace, other):
            for number in range(SLOW_JOBS):
                job = tfjob(f"slow-{number}", Worker=REPLICAS)
                await admin.send(requests.create(TFJOBS.path(namespace), job))
            await eventually(lambda: slow_pods(32))
            await asyncio.sleep(1)  # more of them wait than can be in flight
            before = proxy.pods
            await admin.send(requests.create(TFJOBS.path(other), tfjob("quick", Worker=1)))
            await eventually(lambda: pods(admin, other, 1), 60)
            assert proxy.pods - before <= PARALLEL_WRITES, "it waited for rounds of slow pods"


async def test_slow_events_of_one_tenant_do_not_delay_those_of_another(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    async with (
        control_plane.client() as admin,
        slow_proxy(control_plane.admin, config, delay=90.0) as proxy,
    ):
        await install(admin)
        other = await builders.create_namespace(admin)
        proxy.slow_kind, proxy.slow_path = "events", f"/namespaces/{namespace}/"
        access = kubeconfig.load({"KUBECONFIG": str(config)})
        slow, quick = (f"POST /api/v1/namespaces/{each}/events" for each in (namespace, other))

        async def sent(write: str) -> None:
            assert write in proxy.writes

        async with operator_with(Client(access), namespace, other):
            for number in range(SLOW_JOBS):
                await admin.send(requests.create(TFJOBS.path(namespace), tfjob(f"slow-{number}", Worker=1)))
            await eventually(lambda: sent(slow), 30)
            await asyncio.sleep(1)  # more of them wait than can be in flight
            await admin.send(requests.create(TFJOBS.path(other), tfjob("quick", Worker=1)))
            await eventually(lambda: sent(quick), 30)
