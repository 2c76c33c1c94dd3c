"""TCP connections that are forwarded in both directions, including half-closed ones, and closed at the end."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

CHUNK = 1 << 18

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Accept = Callable[[Stream], Awaitable[None]]


async def join(near: Stream, far: Stream) -> None:
    """Forward all data until both sides have ended. If one connection breaks, the other is reset, too: its reader
    must not take half an answer for a whole one."""
    try:
        await asyncio.gather(_pump(near[0], far[1]), _pump(far[0], near[1]))
    except BaseException as problem:
        for _, writer in (near, far):
            writer.transport.abort()
        if not isinstance(problem, OSError):
            raise
    finally:
        for _, writer in (near, far):
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


class Listener:
    """A server whose connections end with it. A connection that `accept` cannot serve is closed."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    async def start(self, host: str = "", port: int = 0, sock: socket.socket | None = None) -> None:
        """Listen at an address, or on a socket that is bound already. OSError if the address is in use."""
        address: dict[str, Any] = {"host": host, "port": port} if sock is None else {"sock": sock}
        self._server = await asyncio.start_server(self._connected, **address, limit=CHUNK)

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def is_busy(self) -> bool:
        """Whether a connection is open."""
        return bool(self._tasks)

    def stop(self) -> None:
        """Accept no new connections; open ones go on."""
        self._server.close()

    async def close(self) -> None:
        self._is_closed = True
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection. This is no coroutine, so that a connection that comes during `close` is aborted."""
        if self._is_closed:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, writer))

    async def _serve(self, stream: Stream) -> None:
        with contextlib.suppress(OSError):  # it broke
            await self._accept(stream)

    def _end(self, writer: asyncio.StreamWriter, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        writer.close()
