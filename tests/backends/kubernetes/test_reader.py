"""TFJobs of a real apiserver, read as any job is; the requests can be sent by any transport."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from msgspec import Raw
from msgspec.json import Decoder

from tests.controller.cluster import bench, tfjob
from tests.kube.answers import answering
from tfyard.backends.base import Read
from tfyard.backends.kubernetes.reader import ClusterReader
from tfyard.kube import Access, Client
from tfyard.model import Task
from tfyard.testing import ControlPlane, Script, eventually


async def send(client: Client, read: Read[Any]) -> Any:
    return read.decode(bytes(await client.send(read.request, Decoder(Raw))))


@pytest.mark.cluster
async def test_jobs_are_read_by_list_by_name_by_events_and_by_a_watch(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.2)) as cluster:
        reader = ClusterReader(namespace, client=cluster.client)
        watching = asyncio.create_task(anext(reader.watch()))
        await cluster.submit(tfjob("train", Worker=1))
        await cluster.phase("Succeeded")
        (job,) = await send(cluster.client, reader.list_jobs())
        assert (job.name, job.namespace, job.status.phase) == ("train", namespace, "Succeeded")
        assert await send(cluster.client, reader.get_job("train")) == job
        assert [found.name for found in await watching] in ([], ["train"])

        async def told() -> None:
            events = await send(cluster.client, reader.list_events("train"))
            assert [event.reason for event in events][-1] == "TFJobSucceeded"

        await eventually(told)
        by_kubectl = control_plane.kubectl("get", "--raw", reader.get_job("train").request.path)
        assert reader.get_job("train").decode(by_kubectl.encode()) == job


async def test_a_log_is_followed_line_by_line() -> None:
    async def log(request: web.Request) -> web.StreamResponse:
        assert request.path == "/api/v1/namespaces/ml/pods/train-worker-1/log"
        assert dict(request.query) == {"container": "tensorflow", "follow": "true"}
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b"step 1\nst", b"ep 2\nlast"):
            await response.write(part)
            await asyncio.sleep(0.01)
        return response

    async with answering(log) as cluster, Client(Access(cluster=cluster)) as client:
        lines = ClusterReader("ml", client=client).follow("train", Task("Worker", 1))
        assert [line async for line in lines] == ["step 1", "step 2", "last"]


async def test_a_log_is_not_followed_without_a_client() -> None:
    with pytest.raises(ValueError, match="needs a client"):
        await anext(ClusterReader("ml").follow("train", Task("Worker", 1)))
