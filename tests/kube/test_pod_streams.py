"""Commands and connections in pods, through the real API server, beside kubectl; and servers that misbehave."""

import asyncio
import hashlib
import os
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

from tests.kube.answers import answering, plugin, unauthorized
from tests.kubelet.plain_containers import Node, node
from tests.kubelet.test_server import SERVE, served_port
from tfyard import kube
from tfyard.kube import Access, Client, User, pod_streams
from tfyard.kube.pod_streams import ExecFailed, PodCommand
from tfyard.testing import ControlPlane

WAIT = "import time\ntime.sleep(600)"


def command(box: Node, *argv: str, stdin: bool = False, tty: bool = False) -> PodCommand:
    return PodCommand(
        namespace=box.namespace, pod="trainer", container="tensorflow", argv=argv, stdin=stdin, tty=tty
    )


async def run(client: Client, order: PodCommand, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    outputs = {1: b"", 2: b""}
    async with pod_streams.start(client, order) as process:
        if order.stdin:
            await process.write(stdin)
            await process.close_stdin()
        async for channel, data in process.output():
            outputs[channel] += data
        return await process.wait(), outputs[1], outputs[2]


@pytest.mark.cluster
async def test_a_command_has_its_streams_and_its_exit_code_as_with_kubectl(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    script = "cat; echo problem >&2; exit 3"
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        ours = await run(box.client, command(box, "sh", "-c", script, stdin=True), b"in\n")
        theirs = await box.kubectl("exec", "-i", "trainer", "--", "sh", "-c", script, stdin=b"in\n")
        assert ours == (theirs[0], theirs[1], b"problem\n") == (3, b"in\n", b"problem\n")
        odd = "a b&c=d/ü+%"
        assert await run(box.client, command(box, "printf", "%s", odd)) == (0, odd.encode(), b"")
        async with pod_streams.start(box.client, command(box, "sh", "-c", "exit 5")) as process:
            assert await process.wait() == 5  # without reading its output
        with pytest.raises(ExecFailed, match="no-such-program"):
            await run(box.client, command(box, "no-such-program"))


@pytest.mark.cluster
async def test_a_large_input_comes_whole_and_a_terminal_has_its_size(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    payload = hashlib.sha256(b"seed").digest() * 250_000
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        code, output, _ = await run(box.client, command(box, "sha256sum", stdin=True), payload)
        assert (code, output.split()[0].decode()) == (0, hashlib.sha256(payload).hexdigest())
        script = "until stty size | grep '33 101'; do sleep .05; done; exit 7"
        async with pod_streams.start(
            box.client, command(box, "sh", "-c", script, stdin=True, tty=True)
        ) as process:
            await process.resize(101, 33)
            output = b"".join([data async for _, data in process.output()])
            assert (await process.wait(), output) == (7, b"33 101\r\n")


@pytest.mark.cluster
async def test_a_command_that_still_runs_ends_with_its_block(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        async with pod_streams.start(
            box.client, command(box, "sh", "-c", "echo here; exec sleep 600")
        ) as process:
            async for _, data in process.output():
                assert data == b"here\n"
                break
        assert await asyncio.wait_for(box.containers.started[0].wait(), 30) == -9


@pytest.mark.cluster
async def test_refusals_name_the_permission_and_the_pod(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        async with Client(control_plane.access("nobody")) as client:
            with pytest.raises(kube.Forbidden, match="the role needs the verb create on pods/exec"):
                await run(client, command(box, "true"))
        with pytest.raises(kube.NotFound, match='pods "gone" not found'):
            await run(box.client, PodCommand(namespace=namespace, pod="gone", container="", argv=("true",)))


async def proxy(connections: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An HTTP proxy, by CONNECT."""
    head = await reader.readuntil(b"\r\n\r\n")
    connections.append(head.split()[0].decode())
    host, _, port = head.split()[1].decode().partition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await asyncio.gather(copied(reader, far_writer), copied(far_reader, writer))


async def copied(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        to.write(data)
    to.close()


@pytest.mark.cluster
async def test_a_command_goes_through_the_proxy_of_the_kubeconfig(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    connections: list[str] = []
    through = await asyncio.start_server(partial(proxy, connections), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{through.sockets[0].getsockname()[1]}"
    access = control_plane.admin
    access = replace(access, cluster=replace(access.cluster, proxy_url=url))
    async with node(control_plane, namespace, tmp_path) as box, through:
        await box.run("trainer", WAIT)
        async with Client(access) as client:
            assert await run(client, command(box, "echo", "hello")) == (0, b"hello\n", b"")
        assert connections == ["CONNECT"]


async def upgraded(request: web.Request) -> web.WebSocketResponse:
    websocket = web.WebSocketResponse(protocols=[pod_streams.EXEC_PROTOCOL], autoping=False)
    await websocket.prepare(request)
    return websocket


ANY = PodCommand(namespace="n", pod="p", container="c", argv=("true",))


async def test_a_connection_that_breaks_is_no_end_of_the_command() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        websocket = await upgraded(request)
        await websocket.send_bytes(b"\1half")
        assert request.transport
        request.transport.abort()
        return websocket

    async def closed(request: web.Request) -> web.StreamResponse:
        websocket = await upgraded(request)
        await websocket.close()
        return websocket

    for answer in (cut, closed):
        async with answering(answer) as cluster, Client(Access(cluster, User())) as client:
            with pytest.raises(kube.Unreachable):
                await run(client, ANY)


async def test_a_server_that_does_not_answer_pings_is_gone() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        websocket = await upgraded(request)
        while (await websocket.receive()).type is aiohttp.WSMsgType.PING:
            continue
        return websocket

    pace = pod_streams.StreamPace(ping=0.02, silence=0.2)
    async with (
        answering(silent) as cluster,
        Client(Access(cluster, User())) as client,
        pod_streams.channels(client, ANY.request, pod_streams.EXEC_PROTOCOL, pace) as opened,
    ):
        with pytest.raises(kube.Unreachable, match=r"no answer for 0\.2 seconds"):
            await anext(opened.messages())


async def test_a_command_is_not_sent_twice_and_old_clusters_are_told() -> None:
    asked: list[str] = []

    async def broken(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=500, text="dial failed")

    async def older(request: web.Request) -> web.StreamResponse:
        return web.Response(status=403, text="requested protocol(s) are not supported")

    async with answering(broken) as cluster, Client(Access(cluster, User())) as client:
        with pytest.raises(kube.ServerFault, match="dial failed"):
            await run(client, ANY)
    assert len(asked) == 1
    async with answering(older) as cluster, Client(Access(cluster, User())) as client:
        with pytest.raises(pod_streams.NotSpoken, match=r"since 1\.30"):
            await run(client, ANY)


async def test_a_refused_login_is_renewed_before_the_command_is_sent_again(tmp_path: Path) -> None:
    tokens: list[str] = []

    async def once(request: web.Request) -> web.StreamResponse:
        tokens.append(request.headers["Authorization"])
        if len(tokens) == 1:
            return unauthorized()
        websocket = await upgraded(request)
        await websocket.send_bytes(b'\3{"status": "Success"}')
        await websocket.close()
        return websocket

    async with answering(once) as cluster, Client(Access(cluster, plugin(tmp_path, "true"))) as client:
        assert await run(client, ANY) == (0, b"", b"")
    assert tokens == ["Bearer made"] * 2
    assert (tmp_path / "calls").read_text() == "called\n" * 2


async def test_input_waits_for_a_command_that_does_not_read() -> None:
    over = asyncio.Event()

    async def deaf(request: web.Request) -> web.StreamResponse:
        websocket = await upgraded(request)
        await over.wait()
        return websocket

    async with (
        answering(deaf) as cluster,
        Client(Access(cluster, User())) as client,
        pod_streams.start(client, ANY) as process,
    ):
        writing = asyncio.create_task(process.write(bytes(64 << 20)))
        done, _ = await asyncio.wait([writing], timeout=0.5)
        assert not done  # the sockets have taken what they can
        writing.cancel()
        over.set()


# --- connections


async def exchange(client: Client, namespace: str, port: int, size: int) -> int:
    """Sends so many bytes; returns how many come back, after their checksum."""
    async with pod_streams.connect(client, namespace, "trainer", port) as connection:
        await connection.write(b"%d\n" % size)
        await connection.write(os.urandom(size))
        answer = b"".join([data async for data in connection.data()])
    return len(answer) - len("0" * 64 + "\n")


@pytest.mark.cluster
async def test_connections_are_one_websocket_each(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", SERVE)
        port = await served_port(box)
        sizes = [1, 300_000, 300_000, 4_000_000]
        received = await asyncio.gather(*(exchange(box.client, namespace, port, size) for size in sizes))
        assert received == sizes


@pytest.mark.cluster
async def test_a_closed_port_and_a_missing_permission_are_told(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        with pytest.raises(kube.PortRefused, match="cannot connect to port 9 inside the pod"):
            async with pod_streams.connect(box.client, namespace, "trainer", 9) as connection:
                assert [data async for data in connection.data()] == []
        async with Client(control_plane.access("nobody")) as client:
            with pytest.raises(kube.Forbidden, match="the verb create on pods/portforward"):
                await exchange(client, namespace, 9, 1)
