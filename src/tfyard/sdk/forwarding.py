"""Forwards ports of 127.0.0.1 to pods or processes; each problem is reported once."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Protocol

from msgspec import Struct

from tfyard.errors import NotRunning, TfyardError, Usage
from tfyard.kube import Forbidden, KubeError, PortRefused, Unauthorized
from tfyard.model.callbacks import Say

HOST = "127.0.0.1"
PORT = re.compile(r"(?:(\d*):)?(\d+)")
CHUNK = 1 << 16
HALF_CLOSED = 30.0
"""Seconds without data after which a connection ends that the client has half-closed: the protocol cannot tell
that to the pod, and the client may still wait for the answer."""
LAST_WORDS = 1.0
"""Seconds to wait for the reason when data cannot be sent any more."""


class Port(Struct, frozen=True):
    remote: int
    local: int = 0
    """Local port; 0: any that is free."""


def read_ports(words: Sequence[str]) -> list[Port]:
    """Parse ports as kubectl does: 6006, 8080:6006, :6006."""
    matches = {word: PORT.fullmatch(word) for word in words}
    wrong = [word for word, match in matches.items() if not match or not all(map(_is_port, match.groups()))]
    if wrong:
        raise Usage(f"{', '.join(wrong)}: a port is 6006, LOCAL:6006, or :6006 for any that is free here")
    parts = [match.groups() for match in matches.values() if match]
    return [Port(int(remote), int(remote if local is None else local or 0)) for local, remote in parts]


def _is_port(text: str | None) -> bool:
    return not text or 0 < int(text) < 1 << 16


class Stream(Protocol):
    """A connection to the forwarding target."""

    async def write(self, data: bytes) -> None: ...
    def data(self) -> AsyncIterator[bytes]: ...


class Reach(Protocol):
    """A forwarding target. `tell` reports problems while the connection is retried."""

    @property
    def name(self) -> str: ...
    async def connect(self, stack: AsyncExitStack, port: int, tell: Say) -> Stream: ...


@asynccontextmanager
async def listening(reach: Reach, ports: Sequence[Port], say: Say) -> AsyncIterator["Forwarding"]:
    made = Forwarding(reach, say)
    try:
        for port in ports:
            await made.listen(port)
        yield made
    finally:
        await made.close()


class Forwarding:
    def __init__(self, reach: Reach, say: Say) -> None:
        loop = asyncio.get_running_loop()
        self._reach, self._say = reach, say
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._used = loop.time()
        self.trouble = ""
        """The last problem, if it still exists."""
        self.bound: list[Port] = []
        self.refusal: asyncio.Future[KubeError] = loop.create_future()
        """A problem that retries cannot solve: a missing permission."""

    async def listen(self, port: Port) -> None:
        try:
            server = await asyncio.start_server(partial(self._accept, port.remote), HOST, port.local)
        except OSError as problem:
            why = os.strerror(problem.errno) if problem.errno else str(problem)
            raise TfyardError(f"{HOST}:{port.local}: {why}; choose another port here") from None
        self._servers.append(server)
        self.bound.append(Port(port.remote, server.sockets[0].getsockname()[1]))

    async def close(self) -> None:
        self._is_closed = True
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def idle(self) -> float:
        """Seconds since the last connection ended."""
        return 0.0 if self._connections else asyncio.get_running_loop().time() - self._used

    def _accept(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept a connection. Not a coroutine: connections that arrive during `close` must be aborted at once."""
        if self._is_closed:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(port, reader, writer))
        self._connections.add(task)
        task.add_done_callback(partial(self._end, writer))

    def _end(self, writer: asyncio.StreamWriter, task: "asyncio.Task[None]") -> None:
        self._used = asyncio.get_running_loop().time()
        self._connections.discard(task)
        if task.cancelled() or task.exception():
            writer.transport.abort()

    async def _serve(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with AsyncExitStack() as stack:
                stream = await self._reach.connect(stack, port, self._report)
                await join(stream, reader, writer)
            self._report("")
            writer.close()
            return
        except PortRefused as problem:
            self._report(f"{self._reach.name}: nothing listens on port {port}: {problem}")
        except (Forbidden, Unauthorized) as problem:
            if not self.refusal.done():
                self.refusal.set_result(problem)
        except (KubeError, NotRunning, OSError) as problem:
            self._report(f"{self._reach.name} cannot be reached: {problem}")
        writer.transport.abort()

    def _report(self, text: str) -> None:
        """Reports a problem once: a browser tries a dozen times."""
        if text != self.trouble:
            self._say(text or f"{self._reach.name} is reached again")
        self.trouble = text


async def join(stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy data both ways until the pod closes the connection, or the client does and the pod is silent."""
    received = [0]
    uploading = asyncio.create_task(_upload(reader, stream))
    downloading = asyncio.create_task(_download(stream, writer, received))
    try:
        await asyncio.wait([uploading, downloading], return_when=asyncio.FIRST_COMPLETED)
        before = -1
        while not downloading.done() and received[0] != before:
            before = received[0]
            await asyncio.wait([downloading], timeout=_patience(uploading))
        for task in (downloading, uploading):  # the error of the pod first
            if task.done():
                task.result()
    finally:
        for task in (downloading, uploading):
            task.cancel()
        await asyncio.gather(downloading, uploading, return_exceptions=True)


def _patience(uploading: asyncio.Task[bool]) -> float:
    """Seconds to wait for data of the pod after the last byte of the client."""
    if uploading.exception():
        return LAST_WORDS
    return HALF_CLOSED if uploading.result() else 0.0


async def _upload(reader: asyncio.StreamReader, stream: Stream) -> bool:
    """Send the data of the client to the pod; the result is whether the client may still read."""
    while True:
        try:
            data = await reader.read(CHUNK)
        except ConnectionError:
            return False
        if not data:
            return True
        await stream.write(data)


async def _download(stream: Stream, writer: asyncio.StreamWriter, received: list[int]) -> None:
    async for data in stream.data():
        received[0] += len(data)
        try:
            writer.write(data)
            await writer.drain()
        except ConnectionError:
            return  # the client has disconnected
