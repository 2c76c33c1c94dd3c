# ruff: noqa: ARG002
"""A pod of plain subprocesses, on a node whose kubelet is only its server: what its tests need of a runtime."""

import asyncio
import fcntl
import itertools
import os
import pty
import socket
import struct
import sys
import termios
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tfyard.kube import Client, Patch, requests
from tfyard.kubelet.runtime import LogSource, NoSuchContainer
from tfyard.kubelet.server import KubeletServer, server_tls
from tfyard.node.log_limits import keep_times
from tfyard.testing import ControlPlane, builders

ADDRESS = "127.0.0.1"


class PlainProcess:
    def __init__(self, process: Process, stdin: int | None, stdout: int, stderr: int | None) -> None:
        self.process, self.stdin, self.stdout, self.stderr = process, stdin, stdout, stderr

    async def wait(self) -> int:
        code = await self.process.wait()
        return code if code >= 0 else 128 - code

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()


class PlainContainers:
    """One container per pod; each of its runs has a log of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[str, list[Process]] = {}
        self.started: list[Process] = []
        """By exec."""

    async def run(self, pod: str, program: str) -> Process:
        runs = self.runs.setdefault(pod, [])
        with self.log(pod, len(runs)).open("wb") as log:
            command = (sys.executable, "-uc", program)
            process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, cwd=self.folder)
        runs.append(process)
        return process

    def log(self, pod: str, run: int = 0) -> Path:
        return self.folder / f"{pod}.{run}.log"

    def growing(self) -> list[Path]:
        last = {pod: len(runs) - 1 for pod, runs in self.runs.items() if runs[-1].returncode is None}
        return [self.log(pod, run) for pod, run in last.items()]

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool) -> LogSource:
        runs = self.runs[pod]
        if previous and len(runs) < 2:
            raise NoSuchContainer(f'previous terminated container "{container}" in pod "{pod}" not found')
        run = len(runs) - (2 if previous else 1)
        return LogSource(self.log(pod, run), lambda: runs[run].returncode is not None)

    async def exec(
        self, namespace: str, pod: str, container: str, argv: list[str], *, stdin: bool, tty: bool
    ) -> PlainProcess:
        if pod not in self.runs:
            raise NoSuchContainer(f'container "{container}" in pod "{pod}" does not run')
        if tty:
            master, slave = pty.openpty()
            ends = (master, slave, slave, slave, os.dup(master), None)
        else:
            (out, out_end), (err, err_end) = os.pipe(), os.pipe()
            in_end, in_ = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
            ends = (out, in_end, out_end, err_end, in_, err)
        return await self._start(argv, ends)

    def console(self, namespace: str, pod: str, container: str) -> None:
        return None

    async def connect(self, namespace: str, pod: str, port: int) -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, (ADDRESS, port))
        except OSError:
            connection.close()
            raise
        return connection

    async def _start(self, argv: list[str], ends: tuple[Any, ...]) -> PlainProcess:
        output, child_in, child_out, child_err, input_, errors = ends
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                cwd=self.folder,
                start_new_session=True,
            )
        finally:
            for descriptor in {child_in, child_out, child_err}:
                os.close(descriptor)
        self.started.append(process)
        return PlainProcess(process, input_, output, errors)

    async def end(self) -> None:
        for process in itertools.chain(self.started, *self.runs.values()):
            if process.returncode is None:
                process.kill()
            await process.wait()


class Node:
    """A node with these containers, and kubectl in a namespace of its own."""

    def __init__(
        self, plane: ControlPlane, client: Client, namespace: str, containers: PlainContainers
    ) -> None:
        self.plane, self.client, self.namespace, self.containers = plane, client, namespace, containers
        self.name = f"node-{namespace}"

    async def register(self, server: KubeletServer) -> None:
        self.server, port = server, server.port
        await self.client.send(requests.create(requests.NODES.path(), {"metadata": {"name": self.name}}))
        status = {
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        }
        path = requests.NODES.path(name=self.name, subresource="status")
        await self.client.send(requests.patch(path, {"status": status}, Patch.STRATEGIC))

    async def restart_server(self, after: float) -> None:
        """At the same port, after so many seconds; the containers run on."""
        await self.server.__aexit__()
        await asyncio.sleep(after)
        await self.server.__aenter__()

    async def run(self, pod: str, program: str) -> Process:
        """The pod as a process, and as an object that says it runs."""
        if pod not in self.containers.runs:
            created = builders.pod(pod, nodeName=self.name)
            await self.client.send(requests.create(requests.PODS.path(self.namespace), created))
            status = {"status": {"phase": "Running"}}
            path = requests.PODS.path(self.namespace, pod, "status")
            await self.client.send(requests.patch(path, status, Patch.STRATEGIC))
        return await self.containers.run(pod, program)

    async def start_kubectl(self, *args: str, **env: str) -> Process:
        command = self.plane.kubectl_command("-n", self.namespace, *args)
        command[1:1] = [f"{name}={value}" for name, value in env.items()]
        return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)

    async def kubectl(self, *args: str, stdin: bytes = b"", **env: str) -> tuple[int, bytes, str]:
        """Its exit code, output and error output."""
        process = await self.start_kubectl(*args, **env)
        output, errors = await process.communicate(stdin)
        assert process.returncode is not None
        return process.returncode, output, errors.decode()


@asynccontextmanager
async def node(plane: ControlPlane, namespace: str, folder: Path) -> AsyncIterator[Node]:
    pair = plane.kubelet_certificate(f"node-{namespace}", ADDRESS)
    certificate, key = folder / "kubelet.crt", folder / "kubelet.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls = server_tls(certificate, key, plane.folder / "ca.crt")
    containers = PlainContainers(folder)
    noticing = asyncio.create_task(keep_times(containers.growing))
    try:
        async with KubeletServer(containers, tls, ADDRESS) as server, plane.client() as client:
            found = Node(plane, client, namespace, containers)
            await found.register(server)
            try:
                yield found
            finally:
                await client.send(requests.delete(requests.NODES.path(name=found.name)))
    finally:
        noticing.cancel()
        await containers.end()
