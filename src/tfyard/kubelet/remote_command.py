"""`kubectl exec`, `cp` and `attach`: the streams of a process as channels of a WebSocket."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
from aiohttp import WSMsgType, web

from tfyard.kubelet.log_stream import LogOptions, stream
from tfyard.kubelet.runtime import Attached, Console, Containers, LogSource, NoSuchContainer
from tfyard.kubelet.websockets import upgrade

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""Only the fifth can close stdin."""
CHUNK = 1 << 15
IDLE = 0.1
"""Seconds without output after which a process that has ended has said everything: its children may keep its
output open for ever, and a terminal passes it on a little later."""
LAST_WORDS = 20
"""Times IDLE at most: what a child goes on to say is not waited for."""
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PAUSE = 0.02
"""Seconds between two looks at a log that somebody watches as he types."""
SUCCESS = {"status": "Success"}
NO_STDIN = "the container has no stdin, or has ended: use `kubectl exec -it`, or attach without -i"


class Size(msgspec.Struct, frozen=True, rename="pascal"):
    width: int
    height: int


class ContainerConsole:
    """Of a container that runs: its stdin, for whoever attaches to it, and its output, which goes into its log.
    `is_once`: it is for one visitor, and ends with that one."""

    def __init__(self, attached: Attached, log: Path, *, is_once: bool) -> None:
        self.attached, self._log, self._is_once = attached, log, is_once
        self.has_visitors = False
        """Or had some: the first one is shown all that was said before."""
        outputs = [each for each in (attached.stdout, attached.stderr) if each is not None]
        self._open = {*outputs} | ({attached.stdin} if attached.stdin is not None else set())
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        self._said = 0
        self._copies = {asyncio.create_task(self._copy(each)) for each in outputs}

    async def write(self, data: bytes) -> None:
        stdin = self.attached.stdin
        if stdin is not None and stdin in self._open:
            with suppress(BrokenPipeError):  # as `head` does; the rest is for nobody
                await write_descriptor(stdin, data)

    def resize(self, width: int, height: int) -> None:
        self.attached.resize(width, height)

    def close_stdin(self) -> None:
        """The end of a pipe is an end of file; a terminal has none."""
        stdin = self.attached.stdin
        if self._is_once and self.attached.stderr is not None and stdin is not None and stdin in self._open:
            self._open.remove(stdin)
            os.close(stdin)

    def leave(self) -> None:
        """A visitor has gone."""
        if self._is_once:
            self.attached.kill()

    async def close(self) -> None:
        """The process has ended: when all that it has said is in the log."""
        left, said = self._copies, -1
        for _ in range(LAST_WORDS):
            if not left or said == self._said:
                break
            said = self._said
            _, left = await asyncio.wait(left, timeout=IDLE)
        await _cancel(*self._copies)
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    async def _copy(self, descriptor: int) -> None:
        while data := await read_descriptor(descriptor):
            self._said += len(data)
            with (
                suppress(OSError),
                self._log.open("ab") as log,
            ):  # a full disk costs the log, and not the process
                log.write(data)


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
    """What the container writes from now on; the first visitor of one with a stdin sees all of it."""
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
    receiving = asyncio.create_task(_receive(socket, console or _Nobody()))
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
        await _cancel(showing, receiving)
    return socket


def _output(source: LogSource, console: Console | None) -> AsyncGenerator[bytes, None]:
    if console is None:
        return stream(source, LogOptions(follow=True, tail_lines=0))
    options = LogOptions(follow=True, tail_lines=0 if console.has_visitors else None)
    return stream(source, options, pause=PAUSE)


class Input(Protocol):
    """What a client may say to a process."""

    async def write(self, data: bytes) -> None: ...
    def resize(self, width: int, height: int) -> None: ...
    def close_stdin(self) -> None: ...


class _Nobody:
    """Of a client that only looks."""

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
    """One process and one client. Who goes first ends it: a client that is gone takes its process along."""

    def __init__(self, socket: web.WebSocketResponse, attached: Attached) -> None:
        self._socket, self._attached = socket, attached
        self._sent = self._sending = 0
        self._open = {fd for fd in (attached.stdin, attached.stdout, attached.stderr) if fd is not None}

    async def run(self, told: Callable[[int], dict[str, Any]]) -> None:
        """`told`: what the client hears of an exit code."""
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        receiving = asyncio.create_task(_receive(self._socket, self))
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

    async def write(self, data: bytes) -> None:
        stdin = self._attached.stdin
        if stdin in self._open:
            assert stdin is not None
            try:
                await write_descriptor(stdin, data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_stdin()  # as `head` does; the rest is for nobody

    def resize(self, width: int, height: int) -> None:
        self._attached.resize(width, height)

    def close_stdin(self) -> None:
        stdin = self._attached.stdin
        if stdin in self._open and stdin != self._attached.stdout:
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
