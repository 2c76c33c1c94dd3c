"""The one port of the machine that a box takes: a listener on loopback whose connections go to the apiserver."""

import asyncio
import contextlib
import socket
from typing import Self

from tfyard.errors import Usage

CHUNK = 1 << 16
LOOPBACK = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Made before the box enters its own network: a socket stays in the network that it was made in."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(128)
    except OSError as problem:
        listener.close()
        raise Usage(f"--port {port}: {problem.strerror}; choose another, or none for a free one") from problem
    return listener


class Forwarder:
    """`async with Forwarder(listener, address)`: every connection is joined to one to `address`."""

    def __init__(self, listener: socket.socket, target: tuple[str, int]) -> None:
        self._listener, self._target = listener, target
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, sock=self._listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()  # the apiserver is away, a side was reset, or the box ends
        finally:
            self._connections.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(*self._target)
        try:
            await asyncio.gather(_pump(reader, to_server), _pump(from_server, writer))
        finally:
            for end in (writer, to_server):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, until its end is told to the other side."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
