"""`tfyard port-forward`: to tasks of a job on the real API server."""

import asyncio
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from tests.cli.test_exec import Terminal, started
from tests.kubelet.plain_containers import node
from tests.remote.log_job import running
from tfyard.errors import Usage
from tfyard.remote.forwarding import Port, read_ports
from tfyard.testing import ControlPlane

AT = "2024-11-16T03:00:00Z"


async def forward(run: Terminal, *words: str) -> tuple[Process, int]:
    line, env = run.line("port-forward", *words), {**os.environ, **run.environ}
    process = await asyncio.create_subprocess_exec(*line, stdout=PIPE, stderr=PIPE, env=env)
    assert process.stdout
    said = await process.stdout.readline()
    found = re.fullmatch(rb"Forwarding from 127.0.0.1:(\d+) -> \d+\n", said)
    assert found, said
    return process, int(found[1])


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


@pytest.mark.cluster
async def test_a_port_is_reached_over_a_replaced_pod_until_the_job_ends(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    remote = server.sockets[0].getsockname()[1]
    async with node(control_plane, namespace, tmp_path) as box, server:
        job = await started(box)
        run = Terminal(box)
        process, port = await forward(run, "first", "worker-0", f":{remote}")
        assert await asyncio.gather(*(ask(port) for _ in range(5))) == [b"HELLO"] * 5
        await job.delete_pod(0)
        await job.create_pod(0, 1)
        await job.set_pod(0, running())
        assert await ask(port) == b"HELLO"
        condition = {"type": "Succeeded", "status": "True", "reason": "r", "message": "m"}
        times = {"lastUpdateTime": AT, "lastTransitionTime": AT}
        await job.set_status(phase="Succeeded", conditions=[{**condition, **times}])
        _, errors = await process.communicate()
        told = errors.decode().splitlines()
        assert told[0].startswith("tfyard: worker-0 has a new pod, first-worker-0"), told
        assert (process.returncode, told[-1]) == (0, "tfyard: first: Succeeded")
        over = await run("port-forward", "first", "worker-0", "80")
        assert (over.code, "has ended" in over.err) == (1, True)


@pytest.mark.cluster
async def test_what_goes_wrong_is_told_once_and_ctrl_c_ends_it(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await started(box)
        run = Terminal(box)
        process, port = await forward(run, "first", "worker-0", ":9")
        assert {await ask(port) for _ in range(3)} <= {b"", b"reset"}
        taken = await run("port-forward", "first", "worker-0", f"{port}:80")
        assert (taken.code, "Address already in use" in taken.err) == (1, True)
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
        assert process.returncode == 130
        (told,) = errors.decode().splitlines()
        assert told.startswith("tfyard: worker-0: nothing listens on port 9: cannot connect to port 9")


def test_ports_are_read_as_kubectl_reads_them() -> None:
    assert read_ports(["6006", "8080:80", ":2222"]) == [Port(6006, 6006), Port(80, 8080), Port(2222, 0)]
    with pytest.raises(Usage, match=r"^80:, 70000, http, 1:2:3: a port is 6006"):
        read_ports(["80", "80:", "70000", "http", "1:2:3"])
