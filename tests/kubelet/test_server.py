"""The real kubectl, through the real apiserver, to the kubelet's server: logs, exec, cp, attach, port-forward."""

import asyncio
import fcntl
import hashlib
import json
import os
import pty
import re
import ssl
import struct
import termios
from asyncio.subprocess import Process
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from tests.kubelet.plain_containers import Node, node
from tests.kubelet.process_node import read_terminal
from tfyard.testing import ControlPlane, eventually

pytestmark = pytest.mark.cluster

SERVE = """
import asyncio, hashlib
async def serve(reader, writer):
    size = int(await reader.readline())
    writer.write(hashlib.sha256(await reader.readexactly(size)).hexdigest().encode() + b"\\n")
    writer.write(bytes(size)); await writer.drain(); writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1])
    await server.serve_forever()
asyncio.run(main())
"""
EARLY_AND_LATE = """
import os, time
print('early 1\\nearly 2')
while not os.path.exists('go'):
    time.sleep(.02)
print('late 1\\nlate 2')
time.sleep(600)
"""
DOTS = """
import os, time
print('before')
while not os.path.exists('go'):
    os.write(1, b'.\\n')  # a line at once: `print` writes its end by itself
    time.sleep(.05)
print('after')
"""
WAIT = "import time\ntime.sleep(600)"


async def test_logs_whole_tail_since_limit_times_and_previous(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await (await box.run("trainer", "print('first run')")).wait()
        await box.run("trainer", EARLY_AND_LATE)

        async def look(said: bytes) -> None:
            assert (await box.kubectl("logs", "trainer"))[1] == said

        await eventually(partial(look, b"early 1\nearly 2\n"))
        await asyncio.sleep(1)  # what comes now has a later second
        (tmp_path / "go").touch()
        await eventually(partial(look, b"early 1\nearly 2\nlate 1\nlate 2\n"))
        assert (await box.kubectl("logs", "trainer", "--tail=1"))[1] == b"late 2\n"
        assert (await box.kubectl("logs", "trainer", "--limit-bytes=9"))[1] == b"early 1\ne"
        assert (await box.kubectl("logs", "trainer", "-p"))[1] == b"first run\n"
        stamped = (await box.kubectl("logs", "trainer", "--timestamps"))[1].decode().splitlines()
        assert [line.split(" ", 1)[1] for line in stamped] == ["early 1", "early 2", "late 1", "late 2"]
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ", line) for line in stamped)
        late = stamped[2].split(" ")[0]
        since = f"--since-time={late[:19]}Z"
        assert (await box.kubectl("logs", "trainer", since))[1] == b"late 1\nlate 2\n"
        assert (await box.kubectl("logs", "trainer", "--timestamps"))[1].decode().splitlines() == stamped
        code, _, errors = await box.kubectl("logs", "trainer", "--since-time=yesterday")
        assert (code, "yesterday" in errors) == (1, True)


async def test_logs_are_followed_until_the_container_ends(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    program = (
        "import os, time\nprint('loss 1')\nwhile not os.path.exists('go'): time.sleep(.02)\nprint('loss 2')"
    )
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", program)
        kubectl = await box.start_kubectl("logs", "-f", "trainer")
        assert kubectl.stdout
        assert await kubectl.stdout.readline() == b"loss 1\n"
        (tmp_path / "go").touch()
        assert await kubectl.stdout.read() == b"loss 2\n"
        assert await kubectl.wait() == 0


async def test_a_follower_that_goes_leaves_nothing_open(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    def readers() -> int:
        log = str(box.containers.log("trainer"))
        return sum(
            path.is_symlink() and str(path.readlink()) == log for path in Path("/proc/self/fd").iterdir()
        )

    async def look() -> None:
        assert readers() == 0

    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", f"print('here')\n{WAIT}")
        kubectl = await box.start_kubectl("logs", "-f", "trainer")
        assert kubectl.stdout
        assert await kubectl.stdout.readline() == b"here\n"
        assert readers() == 1
        kubectl.kill()
        await kubectl.wait()
        await eventually(look)


async def test_a_missing_log_is_told_in_plain_words(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        code, _, errors = await box.kubectl("logs", "-p", "trainer")
        message = 'previous terminated container "tensorflow" in pod "trainer" not found'
        assert (code, errors) == (1, f"Error from server (BadRequest): {message}\n")


async def test_exec_passes_streams_and_the_exit_code(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        script = "cat; echo problem >&2; exit 3"
        code, output, errors = await box.kubectl(
            "exec", "-i", "trainer", "--", "sh", "-c", script, stdin=b"in\n"
        )
        assert (code, output) == (3, b"in\n")
        assert errors == "problem\ncommand terminated with exit code 3\n"
        code, output, _ = await box.kubectl("exec", "trainer", "--", "sh", "-c", "sleep 60 & echo done")
        assert (code, output) == (0, b"done\n")
        code, _, errors = await box.kubectl("exec", "trainer", "--", "no-such-program")
        assert (code, errors) == (1, "error: [Errno 2] No such file or directory: 'no-such-program'\n")


async def test_exec_with_a_terminal_has_its_size(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        master, slave = pty.openpty()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        command = control_plane.kubectl_command("-n", namespace, "exec", "-it", "trainer", "--", "sh")
        kubectl = await asyncio.create_subprocess_exec(*command, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        os.write(master, b"until stty size | grep '33 101'; do sleep .05; done; echo all ri''ght; exit 7\n")
        said = await read_terminal(master)
        os.close(master)
        assert await kubectl.wait() == 7
        assert b"all right\r\n" in said, said


async def test_a_client_that_goes_takes_its_process_along(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        kubectl = await box.start_kubectl("exec", "trainer", "--", "sh", "-c", "echo here; exec sleep 600")
        assert kubectl.stdout
        assert await kubectl.stdout.readline() == b"here\n"
        kubectl.kill()
        await kubectl.wait()
        assert await asyncio.wait_for(box.containers.started[0].wait(), 30) == -9


async def test_cp_copies_both_ways(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    there, here, back = tmp_path / "there", tmp_path / "here", tmp_path / "back"
    there.mkdir()
    here.write_bytes(os.urandom(5_000_000))
    async with node(control_plane, namespace, there) as box:
        await box.run("trainer", WAIT)
        code, _, errors = await box.kubectl("cp", str(here), f"trainer:{there}/model")
        assert (code, errors) == (0, "")
        assert (there / "model").read_bytes() == here.read_bytes()
        code, _, errors = await box.kubectl("cp", f"trainer:{there}/model", str(back))
        assert code == 0, errors
    assert back.read_bytes() == here.read_bytes()


async def test_attach_shows_what_is_written_from_now_on(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", DOTS)

        async def begun() -> None:
            assert box.containers.log("trainer").read_bytes().startswith(b"before\n.\n")

        await eventually(begun)
        kubectl = await box.start_kubectl("attach", "trainer")
        assert kubectl.stdout
        assert await kubectl.stdout.readline() == b".\n"
        (tmp_path / "go").touch()
        rest = await kubectl.stdout.read()
        assert rest.removesuffix(b"after\n").replace(b".\n", b"") == b"", (
            rest
        )  # perhaps no dot came in between
        assert rest.endswith(b"after\n")
        assert await kubectl.wait() == 0
        code, _, errors = await box.kubectl("attach", "-i", "trainer")
        assert code == 1
        assert "the container has no stdin, or has ended: use `kubectl exec -it`" in errors


async def forward(box: Node, port: int) -> tuple[Process, int]:
    kubectl = await box.start_kubectl("port-forward", "trainer", f":{port}", "--address=127.0.0.1")
    assert kubectl.stdout
    said = await kubectl.stdout.readline()
    found = re.match(rb"Forwarding from 127.0.0.1:(\d+) ", said)
    assert found, (said, kubectl.stderr and await kubectl.stderr.read())
    return kubectl, int(found[1])


async def exchange(port: int, payload: bytes) -> None:
    """Send so many bytes, and get their checksum and as many back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"%d\n" % len(payload) + payload)
    await writer.drain()
    assert (await reader.readline()).strip().decode() == hashlib.sha256(payload).hexdigest()
    assert await reader.read() == bytes(len(payload))
    writer.close()
    await writer.wait_closed()


async def served_port(box: Node) -> int:
    async def look() -> int:
        said = box.containers.log("trainer").read_text()
        assert said.strip()
        return int(said)

    return await eventually(look)


async def test_port_forward_carries_many_connections_at_once(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", SERVE)
        kubectl, port = await forward(box, await served_port(box))
        await asyncio.gather(*(exchange(port, os.urandom(300_000)) for _ in range(8)))
        await exchange(port, os.urandom(8_000_000))
        kubectl.terminate()
        await kubectl.wait()


async def test_port_forward_to_a_port_without_a_server_says_so(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        kubectl, port = await forward(box, 9)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        assert kubectl.stderr
        assert b"cannot connect to port 9 inside the pod" in await kubectl.stderr.readline()
        await kubectl.wait()


async def test_a_plain_websocket_is_one_connection(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    tls = ssl.create_default_context(cafile=str(control_plane.folder / "ca.crt"))
    tls.load_cert_chain(control_plane.folder / "admin.pem")
    async with node(control_plane, namespace, tmp_path) as box, aiohttp.ClientSession() as session:
        await box.run("trainer", SERVE)
        port = await served_port(box)
        url = f"{control_plane.server}/api/v1/namespaces/{namespace}/pods/trainer/portforward?ports={port}"
        async with session.ws_connect(url, ssl=tls, protocols=["v4.channel.k8s.io"]) as socket:
            assert await socket.receive_bytes() == b"\0" + port.to_bytes(2, "little")
            assert await socket.receive_bytes() == b"\1" + port.to_bytes(2, "little")
            await socket.send_bytes(b"\x003\nabc")
            received = b""
            async for message in socket:
                assert message.data[0] == 0
                received += message.data[1:]
    assert received == hashlib.sha256(b"abc").hexdigest().encode() + b"\n" + bytes(3)


async def test_a_client_that_accepts_only_json_is_refused_as_by_a_container_runtime(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    tls = ssl.create_default_context(cafile=str(control_plane.folder / "ca.crt"))
    tls.load_cert_chain(control_plane.folder / "admin.pem")
    url = f"{control_plane.server}/api/v1/namespaces/{namespace}/pods/trainer/exec?command=true&stdout=true"

    async def status(accept: str) -> int:
        connecting = session.ws_connect(
            url, ssl=tls, protocols=["v5.channel.k8s.io"], headers={"Accept": accept}
        )
        try:
            async with connecting:
                return 101
        except aiohttp.WSServerHandshakeError as refusal:
            return refusal.status

    async with node(control_plane, namespace, tmp_path) as box, aiohttp.ClientSession() as session:
        await box.run("trainer", WAIT)
        asked = ["application/json", "application/json, */*", "text/plain;q=0.9, */*;q=0.1"]
        assert [await status(accept) for accept in asked] == [406, 101, 101]


async def test_older_protocols_and_other_callers_are_refused(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        code, _, errors = await box.kubectl(
            "exec", "trainer", "--", "true", KUBECTL_REMOTE_COMMAND_WEBSOCKETS="false"
        )
        assert code == 1
        assert "this node speaks v5.channel.k8s.io or v4.channel.k8s.io over a WebSocket" in errors
        tls = ssl.create_default_context(cafile=str(control_plane.folder / "ca.crt"))
        tls.load_cert_chain(control_plane.folder / "admin.pem")
        found = json.loads(control_plane.kubectl("get", "node", box.name, "-o", "json"))
        port = found["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        url, message = (
            f"https://127.0.0.1:{port}/healthz",
            "only the apiserver may ask this kubelet, not tfyard-admin\n",
        )
        async with aiohttp.ClientSession() as session, session.get(url, ssl=tls) as answer:
            assert (answer.status, await answer.text()) == (403, message)
