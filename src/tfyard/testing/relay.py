"""A TCP relay with scissors: it stands between a client and a real server, and spoils the connection."""

import asyncio
from typing import Self
from urllib.parse import urlsplit

from tfyard.testing.components import LOOPBACK


class Relay:
    """`async with Relay(plane.server) as relay`: the same server at `relay.url`, until one of the verbs."""

    def __init__(self, server: str) -> None:
        address = urlsplit(server)
        self._target = (address.hostname, address.port)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.url = f"https://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def freeze(self) -> None:
        """Swallow nothing, pass nothing on, close nothing: the half-open connection of a cut cable."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def half_close(self) -> None:
        """End-of-file to the client, while its own direction stays open: a server that stopped talking."""
        for to_client in self._writers:
            if not to_client.is_closing():
                to_client.transport.pause_reading()  # type: ignore[attr-defined]
                to_client.get_extra_info("socket").shutdown(1)

    def cut(self) -> None:
        """Close both sides at once, in the middle of whatever was being said."""
        for to_client, to_server in self._writers.items():
            to_client.transport.abort()
            to_server.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()  # the server is away: the client must see a closed door, not us
            return
        self._writers[writer] = to_server
        for pump in (self._pump(reader, to_server), self._pump(from_server, writer)):
            task = asyncio.create_task(pump)
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return  # one side was cut; closing the other is the whole answer
        finally:
            writer.close()
