"""Streams into a pod, through the apiserver and the kubelet: those of a command, as in `kubectl exec`, or a port.

Both are channels of a WebSocket: each message begins with the number of its channel.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import WSMsgType
from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube.errors import ErrorStatus, Forbidden, KubeError, PortRefused, Refused, Unreachable
from tfyard.kube.requests import PODS, Request, get
from tfyard.kube.transport import Client, shut_down
from tfyard.model.corrupt_json import CORRUPT_JSON

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

EXEC_PROTOCOL = "v5.channel.k8s.io"
"""Only this version can close the command's standard input. Kubernetes has it since 1.30, with every container
runtime."""
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PORT_PROTOCOL = "v4.channel.k8s.io"
"""One WebSocket per connection, which every kubelet and container runtime supports. kubectl sends SPDY frames
through one WebSocket instead, where a connection that is not read stops all others."""
PORT_DATA, PORT_ERROR = 0, 1
PORT_NUMBER = 2
"""Bytes of the port number that each channel begins with, for clients that ask for several."""
CHUNK = 1 << 16
SINCE = " (Kubernetes does since 1.30)"


# --- a command


class ExecFailed(KubeError):
    """The node could not start the command."""


class CommandStatus(ErrorStatus, frozen=True, rename="camel"):
    """The last message: how the command ended."""

    status: str = ""


_endings = msgspec.json.Decoder(CommandStatus)


class PodCommand(Struct, frozen=True, kw_only=True):
    namespace: str
    pod: str
    container: str
    argv: tuple[str, ...]
    stdin: bool = False
    tty: bool = False

    @property
    def request(self) -> Request:
        """The request: a POST, which is not repeated, because the command may have run."""
        flags = {"stdin": self.stdin, "stdout": True, "stderr": not self.tty, "tty": self.tty}
        query = [("container", self.container), *((name, str(flag).lower()) for name, flag in flags.items())]
        words = [("command", word) for word in self.argv]
        return Request("POST", f"{PODS.path(self.namespace, self.pod, 'exec')}?{urlencode([*query, *words])}")


@asynccontextmanager
async def start(client: Client, command: PodCommand) -> AsyncIterator["RemoteProcess"]:
    """Starts the command. If it still runs when the block ends, it loses its streams."""
    async with channels(client, command.request, EXEC_PROTOCOL) as opened:
        yield RemoteProcess(opened, client.access.cluster.server)


class RemoteProcess:
    def __init__(self, opened: "Channels", server: str) -> None:
        self._channels, self._server = opened, server
        self._status = b""
        self._problem: KubeError | None = None
        self._is_read = False
        self._over = asyncio.Event()

    async def write(self, data: bytes) -> None:
        """Writes to its standard input. Waits while the other side is slow, so memory stays bounded."""
        if data:
            await self._channels.send(STDIN, data)

    async def close_stdin(self) -> None:
        await self._channels.send(CLOSE, bytes([STDIN]))

    async def resize(self, width: int, height: int) -> None:
        """Sets the size of its terminal."""
        await self._channels.send(RESIZE, msgspec.json.encode({"Width": width, "Height": height}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yields 1 (standard output) or 2 (standard error) and the data, until the process has ended."""
        self._is_read = True
        try:
            async for channel, data in self._channels.messages():
                if channel in (STDOUT, STDERR):
                    yield channel, data
                elif channel == ERROR:
                    # Not the end: output may come after it.
                    self._status += data
        except KubeError as problem:
            if not self._status:
                self._problem = problem
                raise
        finally:
            self._over.set()

    async def wait(self) -> int:
        """The exit code of the command. Its output is discarded, unless `output` is read."""
        if not self._is_read:
            async for _ in self.output():
                continue
        await self._over.wait()
        if self._problem:
            raise self._problem
        if not self._status:
            raise Unreachable(f"{self._server}: closed before the command ended", sent=True)
        return _exit_code(self._status)


def _exit_code(answer: bytes) -> int:
    try:
        status = _endings.decode(answer)
    except CORRUPT_JSON:
        raise ExecFailed(answer.decode(errors="replace")) from None
    causes = (status.details or {}).get("causes") or []
    codes = [str(cause.get("message")) for cause in causes if cause.get("reason") == "ExitCode"]
    if status.reason == "NonZeroExitCode" and codes and codes[0].isdecimal():
        return int(codes[0])
    if status.status != "Success":
        raise ExecFailed(status.message or status.reason)
    return 0


# --- a TCP connection


@asynccontextmanager
async def connect(client: Client, namespace: str, pod: str, port: int) -> AsyncIterator["PodConnection"]:
    request = get(PODS.path(namespace, pod, "portforward"), {"ports": str(port)})
    async with channels(client, request, PORT_PROTOCOL) as opened:
        yield PodConnection(opened, port)


class PodConnection:
    """A TCP connection. It ends when either side closes it: the protocol cannot close one direction alone."""

    def __init__(self, opened: "Channels", port: int) -> None:
        self._channels, self._port = opened, port

    async def write(self, data: bytes) -> None:
        """Sends data; waits while the pod is slow."""
        await self._channels.send(PORT_DATA, data)

    async def data(self) -> AsyncIterator[bytes]:
        """Data from the pod, until it closes the connection. PortRefused if nothing listens there."""
        skip, problem = {PORT_DATA: PORT_NUMBER, PORT_ERROR: PORT_NUMBER}, b""
        async for channel, data in self._channels.messages():
            payload, skip[channel] = data[skip.get(channel, 0) :], max(skip.get(channel, 0) - len(data), 0)
            if channel == PORT_ERROR:
                problem += payload
            elif channel == PORT_DATA and payload:
                yield payload
        if problem:
            raise PortRefused(problem.decode(errors="replace").strip() or f"port {self._port} is refused")


# --- the WebSocket


class StreamPace(Struct, frozen=True):
    """Intervals in seconds."""

    ping: float = 15.0
    """Interval of pings: load balancers cut idle connections, many after a minute."""
    silence: float = 90.0
    """Time without an answer after which the connection is dead. A pod that does not read its input delays the
    answers to pings, so this is more than kubectl's minute."""


DEFAULT_PACE = StreamPace()


class NotSpoken(KubeError):
    """The server or the node does not know the protocol."""


@asynccontextmanager
async def channels(
    client: Client, request: Request, protocol: str, pace: StreamPace = DEFAULT_PACE
) -> AsyncIterator["Channels"]:
    async with AsyncExitStack() as stack:
        try:
            websocket = await stack.enter_async_context(client.websocket(request, protocol))
        except Refused as problem:
            raise _explained(problem, request, protocol) from None
        if websocket.protocol != protocol:
            raise NotSpoken(f"the cluster does not speak {protocol}{SINCE}")
        opened = Channels(client.access.cluster.server, websocket, pace)
        pinging = asyncio.create_task(opened.ping())
        try:
            yield opened
        finally:
            pinging.cancel()
            await asyncio.wait([pinging])


class Channels:
    def __init__(self, server: str, websocket: "ClientWebSocketResponse[bool]", pace: StreamPace) -> None:
        self._server, self._websocket, self._pace = server, websocket, pace
        self._waits_since: float | None = None
        self._why = ""

    async def send(self, channel: int, data: bytes) -> None:
        """Sends data on a channel; waits while the other side is slow."""
        for at in range(0, max(len(data), 1), CHUNK):
            try:
                await self._websocket.send_bytes(bytes([channel]) + data[at : at + CHUNK])
            except (aiohttp.ClientError, OSError) as problem:
                raise self._broken(str(problem)) from problem

    async def messages(self) -> AsyncIterator[tuple[int, bytes]]:
        """Channel and data of each message, until the other side closes; Unreachable if the connection breaks."""
        while True:
            self._waits_since = asyncio.get_running_loop().time()
            message = await self._websocket.receive()
            self._waits_since = None  # while the caller is busy, nothing is received
            match message.type:
                case WSMsgType.BINARY if message.data:
                    yield message.data[0], message.data[1:]
                case WSMsgType.PING:
                    with suppress(aiohttp.ClientError, OSError):  # the next `receive` reports the error
                        await self._websocket.pong(message.data)
                case WSMsgType.CLOSE:
                    return
                case WSMsgType.CLOSED | WSMsgType.CLOSING | WSMsgType.ERROR:
                    raise self._broken(
                        self._why or str(self._websocket.exception() or "the connection broke")
                    )

    async def ping(self) -> None:
        """Sends pings until it is cancelled, or the connection is dead."""
        with suppress(aiohttp.ClientError, OSError):  # `messages` and `send` report the error
            while self._is_alive():
                await asyncio.sleep(self._pace.ping)
                with suppress(TimeoutError):  # the other side does not read
                    async with asyncio.timeout(self._pace.ping):
                        await self._websocket.ping()
            self._why = f"no answer for {self._pace.silence:g} seconds"
        shut_down(self._websocket)

    def _is_alive(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._waits_since is None or now - self._waits_since < self._pace.silence

    def _broken(self, why: str) -> Unreachable:
        return Unreachable(f"{self._server}: {why}", sent=True)


def _explained(problem: Refused, request: Request, protocol: str) -> KubeError:
    if not isinstance(problem, Forbidden):
        return problem
    if problem.status.reason != "Forbidden":  # from a container runtime, which knows no permissions
        return NotSpoken(f"the cluster does not speak {protocol}{SINCE}: {problem}")
    subresource = request.path.partition("?")[0].rpartition("/")[2]
    role = f"the role needs the verb create on pods/{subresource} (before Kubernetes 1.35 also get)"
    return Forbidden(replace(problem.status, message=f"{problem.status.message}; {role}"))
