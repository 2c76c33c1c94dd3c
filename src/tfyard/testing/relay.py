"""A TCP relay between a client and a real server that can break the connection in several ways."""

import asyncio
import contextlib
import socket
from typing import Self
from urllib.parse import urlsplit

from tfyard.controlplane.components import LOOPBACK
from tfyard.dev.connections import Listener, Stream


class Relay:
    """A relay to a server, as in `async with Relay(plane.server) as relay`; clients connect to `relay.url`."""

    def __init__(self, server: str) -> None:
        address = urlsplit(server)
        self._target = (address.hostname, address.port)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._listener = Listener(self._relay)
        self.connections = 0

    async def __aenter__(self) -> Self:
        await self._listener.start(LOOPBACK)
        self.url = f"https://{LOOPBACK}:{self._listener.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.close()

    def freeze(self) -> None:
        """Forward nothing and close nothing, as when a cable is cut."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def half_close(self) -> None:
        """Send end-of-file to the client, while the direction to the server stays open."""
        for to_client in self._open:
            to_client.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Reset both sides at once, even in the middle of a message."""
        for to_client, to_server in self._open.items():
            to_client.transport.abort()
            to_server.transport.abort()

    async def _relay(self, stream: Stream) -> None:
        reader, writer = stream
        self.connections += 1
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
            self._open[writer] = to_server
            await asyncio.gather(self._pump(reader, to_server), self._pump(from_server, writer))
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()  # the server is away, a side was reset, or the relay is closing
        finally:
            await self._close(writer)

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        ends = (writer, self._open.pop(writer, writer))
        for end in ends:  # before waiting, which is cancelled when the relay closes
            end.close()
        for end in ends:
            with contextlib.suppress(OSError):
                await end.wait_closed()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        writer.close()
