"""`kubectl exec`, `cp` and `attach`: the streams of a process as channels of a WebSocket."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, Protocol

import msgspec
from aiohttp import WSMsgType, web

from tfyard.kubelet.log_stream import LogOptions, stream
from tfyard.kubelet.runtime import Console, Containers, ExecProcess, LogSource, NoSuchContainer
from tfyard.kubelet.websockets import upgrade
from tfyard.node.console import IDLE, cancel, read_descriptor, write_descriptor

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""Subprotocols of the WebSocket; only the fifth can close stdin."""
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PAUSE = 0.02
"""Seconds between two reads of the log of an interactive container."""
SUCCESS = {"status": "Success"}
NO_STDIN = "the container has no stdin, or has ended: use `kubectl exec -it`, or attach without -i"


class Size(msgspec.Struct, frozen=True, rename="pascal"):
    width: int
    height: int


async def exec_(
    request: web.Request, containers: Containers, where: tuple[str, str, str]
) -> web.StreamResponse:
    argv, query = request.query.getall("command", []), request.query
    socket = await upgrade(request, PROTOCOLS)
    try:
        stdin, tty = query.get("input") == "1", query.get("tty") == "1"
        process = await containers.exec(*where, argv, stdin=stdin, tty=tty)
    except (NoSuchContainer, OSError) as error:
        await _finish(socket, _failure(str(error)))
    else:
        await _Session(socket, process).run(_ended)
    return socket


async def attach(
    request: web.Request, containers: Containers, where: tuple[str, str, str]
) -> web.StreamResponse:
    """Send what the container writes from now on; if it has a stdin, its first client gets all output."""
    socket = await upgrade(request, PROTOCOLS)
    try:
        console = containers.console(*where)
        if console is None and request.query.get("input") == "1":
            raise NoSuchContainer(NO_STDIN)
        source = containers.logs(*where, previous=False)
    except NoSuchContainer as error:
        await _finish(socket, _failure(str(error)))
        return socket
    output = _output(source, console)
    showing = asyncio.create_task(_show(socket, output))
    receiving = asyncio.create_task(_receive(socket, console or _NoInput()))
    if console is not None:
        console.has_visitors = True
    try:
        await asyncio.wait({showing, receiving}, return_when=asyncio.FIRST_COMPLETED)
        if showing.done():
            showing.result()
            await _finish(socket, SUCCESS)  # how it ended is in the status of the pod
    finally:
        if console is not None and not showing.done():
            console.leave()
        await cancel(showing, receiving)
    return socket


def _output(source: LogSource, console: Console | None) -> AsyncGenerator[bytes, None]:
    if console is None:
        return stream(source, LogOptions(follow=True, tail_lines=0))
    options = LogOptions(follow=True, tail_lines=0 if console.has_visitors else None)
    return stream(source, options, pause=PAUSE)


class Input(Protocol):
    """Input of a process that a client may send."""

    async def write(self, data: bytes) -> None: ...
    def resize(self, width: int, height: int) -> None: ...
    def close_stdin(self) -> None: ...


class _NoInput:
    """Ignores the input of a client that attached without stdin."""

    async def write(self, data: bytes) -> None: ...
    def resize(self, width: int, height: int) -> None: ...
    def close_stdin(self) -> None: ...


async def _receive(socket: web.WebSocketResponse, into: Input) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == STDIN:
            await into.write(data)
        elif channel == RESIZE:
            size = msgspec.json.decode(data, type=Size)
            into.resize(size.width, size.height)
        elif channel == CLOSE and data == bytes([STDIN]):
            into.close_stdin()


async def _show(socket: web.WebSocketResponse, output: AsyncGenerator[bytes, None]) -> None:
    with suppress(ConnectionResetError):  # `_receive` ends, too
        async with aclosing(output) as parts:
            async for data in parts:
                await socket.send_bytes(bytes([STDOUT]) + data)


class _Session:
    """One process and one client. The first to go ends the session: without its client, the process is killed."""

    def __init__(self, socket: web.WebSocketResponse, process: ExecProcess) -> None:
        self._socket, self._process = socket, process
        self._sent = self._sending = 0
        self._open = {fd for fd in (process.stdin, process.stdout, process.stderr) if fd is not None}

    async def run(self, status: Callable[[int], dict[str, Any]]) -> None:
        """Run until either ends. `status`: what is sent to the client, by the exit code."""
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        receiving = asyncio.create_task(_receive(self._socket, self))
        ending = asyncio.create_task(self._process.wait())
        outputs = {STDOUT: self._process.stdout, STDERR: self._process.stderr}
        copies = {asyncio.create_task(self._copy(ch, fd)) for ch, fd in outputs.items() if fd is not None}
        try:
            await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                await self._drain(copies)
                await _finish(self._socket, status(ending.result()))
            else:
                receiving.result()
        finally:
            if not ending.done():
                self._process.kill()
            await cancel(receiving, ending, *copies)
            for descriptor in self._open:
                os.close(descriptor)

    async def write(self, data: bytes) -> None:
        stdin = self._process.stdin
        if stdin in self._open:
            assert stdin is not None
            try:
                await write_descriptor(stdin, data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_stdin()  # it reads no more, as `head` does

    def resize(self, width: int, height: int) -> None:
        self._process.resize(width, height)

    def close_stdin(self) -> None:
        stdin = self._process.stdin
        if stdin in self._open and stdin != self._process.stdout:
            assert stdin is not None
            self._open.remove(stdin)
            os.close(stdin)

    async def _copy(self, channel: int, descriptor: int) -> None:
        with suppress(ConnectionResetError):  # `_receive` ends, too
            while data := await read_descriptor(descriptor):
                self._sending += 1
                await self._socket.send_bytes(bytes([channel]) + data)
                self._sending -= 1
                self._sent += 1

    async def _drain(self, copies: set[asyncio.Task[None]]) -> None:
        while copies:
            sent = self._sent
            done, copies = await asyncio.wait(copies, timeout=IDLE)
            for task in done:
                task.result()
            if self._sent == sent and not self._sending:
                return


async def _finish(socket: web.WebSocketResponse, status: dict[str, Any]) -> None:
    with suppress(ConnectionResetError):  # the client did not wait for it
        await socket.send_bytes(bytes([ERROR]) + msgspec.json.encode({"metadata": {}, **status}))
        await socket.close()


def _failure(message: str) -> dict[str, Any]:
    return {"status": "Failure", "message": message, "reason": "InternalError", "code": 500}


def _ended(code: int) -> dict[str, Any]:
    """Status of an exit code, in the words of container runtimes; kubectl takes its own exit code from it."""
    if code == 0:
        return SUCCESS
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
