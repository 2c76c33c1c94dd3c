"""`kubectl exec`, `cp` and `attach`: the streams of a process as channels of a WebSocket."""

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from tfyard.kubelet.log_stream import LogOptions, stream
from tfyard.kubelet.runtime import Attached, Containers, NoSuchContainer
from tfyard.kubelet.websockets import upgrade

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""Only the fifth can close stdin."""
CHUNK = 1 << 15
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
IDLE = 0.1
"""Seconds without output after which a process that has ended has said everything: its children may keep its
output open for ever, and a terminal passes it on a little later."""
SUCCESS = {"status": "Success"}
NO_STDIN = "this node cannot attach to the stdin of a container: use `kubectl exec -it`, or attach without -i"


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
        attached = await containers.exec(*where, argv, stdin=stdin, tty=tty)
    except (NoSuchContainer, OSError) as error:
        await _finish(socket, _failure(str(error)))
    else:
        await _Session(socket, attached).run(_ended)
    return socket


async def attach(
    request: web.Request, containers: Containers, where: tuple[str, str, str]
) -> web.StreamResponse:
    """What the container writes from now on. Only that of `kubectl debug` has kept its stdin for somebody."""
    socket = await upgrade(request, PROTOCOLS)
    if (attached := containers.terminal(*where)) is not None:
        await _Session(socket, attached).run(lambda _: SUCCESS)  # how it ended is in the status of the pod
        return socket
    try:
        if request.query.get("input") == "1":
            raise NoSuchContainer(NO_STDIN)
        source = containers.logs(*where, previous=False)
    except NoSuchContainer as error:
        await _finish(socket, _failure(str(error)))
        return socket
    receiving = asyncio.create_task(_until_closed(socket))
    try:
        async with aclosing(stream(source, LogOptions(follow=True, tail_lines=0))) as parts:
            async for data in parts:
                await socket.send_bytes(bytes([STDOUT]) + data)
        await _finish(socket, SUCCESS)
    finally:
        receiving.cancel()
    return socket


class _Session:
    """One process and one client. Who goes first ends it: a client that is gone takes its process along."""

    def __init__(self, socket: web.WebSocketResponse, attached: Attached) -> None:
        self._socket, self._attached = socket, attached
        self._sent = self._sending = 0
        self._open = {fd for fd in (attached.stdin, attached.stdout, attached.stderr) if fd is not None}

    async def run(self, told: Callable[[int], dict[str, Any]]) -> None:
        """`told`: what the client hears of an exit code."""
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        receiving = asyncio.create_task(self._receive())
        ending = asyncio.create_task(self._attached.wait())
        outputs = {STDOUT: self._attached.stdout, STDERR: self._attached.stderr}
        copies = {asyncio.create_task(self._copy(ch, fd)) for ch, fd in outputs.items() if fd is not None}
        try:
            await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                await self._drain(copies)
                await _finish(self._socket, told(ending.result()))
            else:
                receiving.result()
        finally:
            if not ending.done():
                self._attached.kill()
            await _cancel(receiving, ending, *copies)
            for descriptor in self._open:
                os.close(descriptor)

    async def _receive(self) -> None:
        async for message in self._socket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == STDIN:
                await self._write(data)
            elif channel == RESIZE:
                size = msgspec.json.decode(data, type=Size)
                self._attached.resize(size.width, size.height)
            elif channel == CLOSE and data == bytes([STDIN]):
                self._close_stdin()

    async def _write(self, data: bytes) -> None:
        stdin = self._attached.stdin
        if stdin in self._open:
            assert stdin is not None
            try:
                await write_descriptor(stdin, data)
            except (BrokenPipeError, ConnectionResetError):
                self._close_stdin()  # as `head` does; the rest is for nobody

    def _close_stdin(self) -> None:
        stdin = self._attached.stdin
        if stdin in self._open and stdin != self._attached.stdout:
            assert stdin is not None
            self._open.remove(stdin)
            os.close(stdin)

    async def _copy(self, channel: int, descriptor: int) -> None:
        with suppress(ConnectionResetError):  # `_receive` ends, too
            while data := await read_descriptor(descriptor):
                self._sending += 1
                self._attached.keep(data)
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


async def read_descriptor(descriptor: int) -> bytes:
    """What is there, at least one byte; b"" at the end. A terminal ends with EIO: nobody has it open any more."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(descriptor, CHUNK)
        except BlockingIOError:
            await _ready(descriptor, loop.add_reader, loop.remove_reader)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""


async def write_descriptor(descriptor: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await _ready(descriptor, loop.add_writer, loop.remove_writer)


async def _ready(descriptor: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        continue  # pings are answered meanwhile


async def _finish(socket: web.WebSocketResponse, status: dict[str, Any]) -> None:
    with suppress(ConnectionResetError):  # the client did not wait for it
        await socket.send_bytes(bytes([ERROR]) + msgspec.json.encode({"metadata": {}, **status}))
        await socket.close()


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _failure(message: str) -> dict[str, Any]:
    return {"status": "Failure", "message": message, "reason": "InternalError", "code": 500}


def _ended(code: int) -> dict[str, Any]:
    """As the container runtimes say it; kubectl takes its own exit code from here."""
    if code == 0:
        return SUCCESS
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
