"""`kubectl port-forward`: connections into a pod through one WebSocket.

kubectl sends SPDY/3.1 in it: any number of connections, each with a stream for data and one for an error. Simpler
clients open a WebSocket per connection: channel 0 is data, channel 1 an error, 2 and 3 are those of a second port.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import WSMsgType, web
from msgspec import Struct

from tfyard.kubelet import spdy
from tfyard.kubelet.runtime import Containers, NoSuchContainer
from tfyard.kubelet.websockets import upgrade

TUNNEL, CHANNELS = "SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io"
CHUNK = 1 << 15
WAITING = 64
"""Messages that are kept for a pod that does not read; then the whole WebSocket waits for it."""

Connect = Callable[[int], Awaitable[socket.socket]]


async def port_forward(
    request: web.Request, containers: Containers, where: tuple[str, str]
) -> web.StreamResponse:
    try:
        ports = [int(port) for text in request.query.getall("port", []) for port in text.split(",")]
    except ValueError:
        raise web.HTTPBadRequest(text=f"port={request.query['port']} is not a list of ports\n") from None
    # A WebSocket without a protocol is the second form, as in every kubelet.
    websocket = await upgrade(request, (TUNNEL, CHANNELS, ""))
    connect = partial(containers.connect, *where)
    if websocket.ws_protocol == TUNNEL:
        await _Tunnel(websocket, connect).run()
    else:
        await _PortChannels(websocket, connect, ports).run()
    return websocket


class _Connection:
    """One TCP connection into the pod."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(WAITING)
        self._is_over = False

    async def feed(self, data: bytes) -> None:
        """Pass on what the client sends; b"" is its end."""
        if not self._is_over:
            await self._waiting.put(data)

    async def run(self, connect: Connect, port: int) -> str:
        """Copy until the pod closes the connection. Returns what went wrong, for the user."""
        try:
            await self._copy(await connect(port))
        except (NoSuchContainer, OSError) as error:
            return f"cannot connect to port {port} inside the pod: {error}"
        finally:
            self._is_over = True
            while not self._waiting.empty():
                self._waiting.get_nowait()  # a call of `feed` may wait
        return ""

    async def _copy(self, connection: socket.socket) -> None:
        """Copy both ways. A connection that breaks later is no error: kubectl would give up all others."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection)
        writing = asyncio.create_task(self._write(writer))
        try:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(CHUNK):
                    await self._send(data)
        finally:
            writing.cancel()
            writer.close()  # before the wait, which is cancelled when the client goes
            await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the reader sees it, too
            while data := await self._waiting.get():
                writer.write(data)
                await writer.drain()
            writer.write_eof()


class _Pair(Struct):
    """The two streams of one connection; they may come in any order."""

    port: int
    data: int = 0
    error: int = 0


class _Tunnel:
    def __init__(self, websocket: web.WebSocketResponse, connect: Connect) -> None:
        self._websocket, self._connect = websocket, connect
        self._decoder, self._encoder = spdy.FrameDecoder(), spdy.Encoder()
        self._pairs: dict[str, _Pair] = {}
        self._connections: dict[int, _Connection] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            async for message in self._websocket:
                if message.type is WSMsgType.BINARY:
                    for frame in self._decoder.feed(message.data):
                        await self._on_frame(frame)
        except (spdy.BadFrame, ConnectionResetError) as problem:
            await self._websocket.close(message=str(problem).encode())
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _on_frame(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.SynStream():
                await self._websocket.send_bytes(self._encoder.reply(frame.stream))
                self._open(frame)
            case spdy.Data() if frame.stream in self._connections:
                if frame.data:
                    await self._connections[frame.stream].feed(frame.data)
                if frame.is_last:
                    await self._connections[frame.stream].feed(b"")
            case spdy.Reset() if frame.stream in self._tasks:
                self._tasks[frame.stream].cancel()
            case spdy.Ping():
                await self._websocket.send_bytes(self._encoder.ping(frame.number))

    def _open(self, frame: spdy.SynStream) -> None:
        headers = frame.headers
        if not headers.get("port", "").isdecimal():
            raise spdy.BadFrame("a stream without a port")
        request = headers.get("requestid", "")
        pair = self._pairs.setdefault(request, _Pair(int(headers["port"])))
        if headers.get("streamtype") == "error":
            pair.error = frame.stream
        else:
            pair.data = frame.stream
            self._connections[pair.data] = _Connection(partial(self._send, pair.data))
        if pair.data and pair.error:
            task = asyncio.create_task(self._forward(self._pairs.pop(request)))
            self._tasks[pair.data] = task
            task.add_done_callback(lambda _: self._forget(pair.data))

    async def _forward(self, pair: _Pair) -> None:
        problem = await self._connections[pair.data].run(self._connect, pair.port)
        with contextlib.suppress(ConnectionResetError):  # the client is gone, and `run` ends
            await self._send(pair.error, problem.encode(), is_last=True)
            await self._send(pair.data, b"", is_last=True)

    async def _send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        await self._websocket.send_bytes(self._encoder.data(stream, data, is_last=is_last))

    def _forget(self, stream: int) -> None:
        del self._tasks[stream], self._connections[stream]


class _PortChannels:
    def __init__(self, websocket: web.WebSocketResponse, connect: Connect, ports: list[int]) -> None:
        self._websocket, self._connect, self._ports = websocket, connect, ports
        self._connections = [_Connection(partial(self._send, 2 * at)) for at in range(len(ports))]

    async def run(self) -> None:
        forwarding = asyncio.gather(*(self._forward(at) for at in range(len(self._ports))))
        receiving = asyncio.create_task(self._receive())
        try:
            both: set[asyncio.Future[Any]] = {forwarding, receiving}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await self._websocket.close()
        finally:
            forwarding.cancel()
            receiving.cancel()
            await asyncio.gather(forwarding, receiving, return_exceptions=True)

    async def _forward(self, at: int) -> None:
        """Forward a port. Each channel begins with its port, so that clients can tell several apart."""
        port = self._ports[at]
        for channel in (2 * at, 2 * at + 1):
            await self._send(channel, port.to_bytes(2, "little"))
        if problem := await self._connections[at].run(self._connect, port):
            await self._send(2 * at + 1, problem.encode())

    async def _receive(self) -> None:
        async for message in self._websocket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            at, is_error = divmod(message.data[0], 2)
            if at < len(self._connections) and not is_error and len(message.data) > 1:
                await self._connections[at].feed(message.data[1:])

    async def _send(self, channel: int, data: bytes) -> None:
        await self._websocket.send_bytes(bytes([channel]) + data)
