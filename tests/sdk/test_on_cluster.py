"""Jobs on a cluster from Python, on the real API server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import tfyard
from tests.cli.test_get import tfjob
from tests.kubelet.plain_containers import node
from tests.remote.log_job import COUNT, LogJob, ended, failed, running
from tfyard import aio
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


async def ask(port: int, text: bytes = b"hello") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    writer.write_eof()
    try:
        return await reader.read()
    except ConnectionResetError:
        return b"reset"
    finally:
        writer.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read(100)).upper())
    await writer.drain()
    writer.close()


async def test_a_job_is_found_read_followed_and_waited_for(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet of this test is in its event loop, so tfyard's synchronous words are called in threads."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    monkeypatch.chdir(tmp_path)
    async with node(control_plane, namespace, tmp_path) as box:
        job = LogJob(box)
        await job.create()
        for index in (0, 1):
            await job.create_pod(index)
        await (await job.start(0, "print('Step: 1, loss: 0.5')\nraise KeyError('shard')")).wait()
        await job.set_pod(0, ended(1))
        await job.start(1, COUNT)
        await job.set_pod(1, running())

        run = await asyncio.to_thread(tfyard.find, "first", namespace=namespace)
        assert (run.name, run.namespace, run.directory) == ("first", namespace, None)
        assert await asyncio.to_thread(lambda: run.tasks) == ["worker-0", "worker-1"]
        assert repr(run) == f"<Run first in the namespace {namespace}>"
        lines = await asyncio.to_thread(lambda: list(run.logs(task="worker-0")))
        assert [lines[0].text, lines[-1].text] == ["Step: 1, loss: 0.5", "KeyError: 'shard'"]
        assert lines[0].time is not None
        rows = await asyncio.to_thread(run.metrics, "worker-0")
        assert [(row["step"], row["loss"]) for row in rows] == [(1, 0.5)]
        found = await asyncio.to_thread(tfyard.runs, namespace=namespace)
        assert [each.name for each in found] == ["first"]

        twin = await aio.find("first", namespace=namespace)
        done = await twin.exec("echo one; echo bad >&2; exit 3", task="worker-1")
        assert done == tfyard.Executed(3, "one\n", "bad\n")
        with pytest.raises(tfyard.TfyardError, match="worker-0 is not running: it ended with code 1"):
            await asyncio.to_thread(run.exec, ["true"], "worker-0")
        with pytest.raises(tfyard.Usage, match="the job has 2 tasks: name one of worker-0, worker-1"):
            await twin.exec("true")
        await reach_a_port(twin)

        seen = 0
        async for line in twin.logs(follow=True, role="worker", tail=5):
            seen += line.task == "worker-1"
            if seen == 20:
                (box.containers.folder / "go").touch()
                break
        with pytest.raises(tfyard.WaitTimeout):
            await twin.wait(0.5)
        waiting = asyncio.create_task(twin.wait("1m"))
        await job.set_status(**failed("worker-0", 7))
        with pytest.raises(tfyard.JobFailed, match="KeyError: 'shard'") as caught:
            await waiting
        assert (caught.value.code, await twin.status, await twin.exit_code) == (7, "Failed", 7)
        assert "TFJobFailed" in await twin.describe()
        assert "KeyError: &#x27;shard&#x27;" in await asyncio.to_thread(run._repr_html_)
        followed = [line.text async for line in twin.logs(follow=True, task="worker-0")]
        assert followed[-1] == "KeyError: 'shard'"


async def reach_a_port(run: aio.Run) -> None:
    """Of a task that is a process of this machine; after the block, nobody listens."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, run.port_forward("worker-1", server.sockets[0].getsockname()[1]) as address:
        host, _, port = address.partition(":")
        assert (host, await ask(int(port))) == ("127.0.0.1", b"HELLO")
    with pytest.raises(ConnectionRefusedError):
        await ask(int(port))
    with pytest.raises(tfyard.TfyardError, match="worker-0 is not running"):
        async with run.port_forward("worker-0", 80):
            pass


def test_an_unknown_name_is_reported_with_a_similar_one(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    with pytest.raises(tfyard.TfyardError, match=f"TFJob 'absent' not found in the namespace {namespace}"):
        tfyard.find("absent", namespace=namespace, kubeconfig=control_plane.kubeconfig)
    assert tfyard.runs(namespace=namespace, kubeconfig=control_plane.kubeconfig) == []


def test_a_job_is_scaled_stopped_resumed_repeated_and_deleted(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    with SyncClient(control_plane.admin) as client:
        client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))

        def spec(name: str = "first") -> Any:
            return client.send(requests.get(TFJOBS.path(namespace, name)))["spec"]

        run = tfyard.find("first", namespace=namespace, kubeconfig=control_plane.kubeconfig)
        assert run.scale(worker=3).stop() is run
        assert spec()["tfReplicaSpecs"]["Worker"]["replicas"] == 3
        assert spec()["runPolicy"]["suspend"] is True
        assert run.resume().name == "first"
        assert spec()["runPolicy"]["suspend"] is False
        again = run.rerun(worker=2, env={"LR": 0.5})
        assert (again.name, again.namespace) == ("first-2", namespace)
        worker = spec("first-2")["tfReplicaSpecs"]["Worker"]
        assert worker["replicas"] == 2
        assert {"name": "LR", "value": "0.5"} in worker["template"]["spec"]["containers"][0]["env"]
        with pytest.raises(tfyard.Usage, match="unknown role 'wroker'"):
            run.scale(wroker=1)
        run.delete()
        with pytest.raises(tfyard.TfyardError, match="not found"):
            run.status  # noqa: B018
        client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
        with pytest.raises(tfyard.TfyardError, match="was deleted; there is a newer one of that name"):
            run.stop()
