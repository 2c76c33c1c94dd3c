"""Jobs that are not found, and why."""

import asyncio

import pytest

from tests.controller.cluster import bench
from tests.remote.situations import job
from tfyard.errors import NoSuchJob
from tfyard.kube.sync import SyncClient
from tfyard.remote.reading import jobs
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster


def missing(plane: ControlPlane, namespace: str, name: str) -> str:
    """The message; empty while the job is there."""
    with SyncClient(plane.admin) as client:
        try:
            jobs.find(client, namespace, name)
        except NoSuchJob as problem:
            return str(problem)
    return ""


async def test_a_job_that_its_ttl_has_removed_and_a_namespace_that_does_not_exist_are_told(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.1)) as yard:
        await yard.submit(job("short", policy={"ttlSecondsAfterFinished": 0}))

        async def look() -> None:
            told = await asyncio.to_thread(missing, control_plane, namespace, "short")
            assert told.endswith("any more: Deleted job: its TTL has expired")

        await eventually(look, 30)
        never = await asyncio.to_thread(missing, control_plane, namespace, "never")
        assert never.startswith(f"TFJob 'never' not found in the namespace {namespace}; ")
    nowhere = await asyncio.to_thread(missing, control_plane, "nowhere", "short")
    assert nowhere == "there is no namespace nowhere; `kubectl get namespaces` lists them"
