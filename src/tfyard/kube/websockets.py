"""Channels of a WebSocket, as exec and port-forward have them: each message begins with the number of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import WSMsgType
from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube.errors import Forbidden, KubeError, Refused, Unreachable
from tfyard.kube.requests import Request
from tfyard.kube.transport import Client, shut_down

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

CHUNK = 1 << 16
SINCE = " (Kubernetes does since 1.30)"


class Pace(Struct, frozen=True):
    """Seconds."""

    ping: float = 15.0
    """Load balancers cut connections that say nothing, many after a minute."""
    silence: float = 90.0
    """Without any answer for so long, the connection is dead. A pod that does not read its input delays the
    answers to pings, so this is more than kubectl's minute."""


DEFAULT_PACE = Pace()


class NotSpoken(KubeError):
    """The server or the node does not know the protocol."""


@asynccontextmanager
async def channels(
    client: Client, request: Request, protocol: str, pace: Pace = DEFAULT_PACE
) -> AsyncIterator["Channels"]:
    async with AsyncExitStack() as stack:
        try:
            websocket = await stack.enter_async_context(client.websocket(request, protocol))
        except Refused as problem:
            raise _explained(problem, request, protocol) from None
        if websocket.protocol != protocol:
            raise NotSpoken(f"the cluster does not speak {protocol}{SINCE}")
        found = Channels(client.access.cluster.server, websocket, pace)
        pinging = asyncio.create_task(found.ping())
        try:
            yield found
        finally:
            pinging.cancel()
            await asyncio.wait([pinging])


class Channels:
    def __init__(self, server: str, websocket: "ClientWebSocketResponse[bool]", pace: Pace) -> None:
        self._server, self._websocket, self._pace = server, websocket, pace
        self._waits_since: float | None = None
        self._why = ""

    async def send(self, channel: int, data: bytes) -> None:
        """Waits while the other side is slow."""
        for at in range(0, max(len(data), 1), CHUNK):
            try:
                await self._websocket.send_bytes(bytes([channel]) + data[at : at + CHUNK])
            except (aiohttp.ClientError, OSError) as problem:
                raise self._broken(str(problem)) from problem

    async def messages(self) -> AsyncIterator[tuple[int, bytes]]:
        """Until the other side closes it; Unreachable if it breaks."""
        while True:
            self._waits_since = asyncio.get_running_loop().time()
            message = await self._websocket.receive()
            self._waits_since = None  # while the caller is busy, nothing is heard
            match message.type:
                case WSMsgType.BINARY if message.data:
                    yield message.data[0], message.data[1:]
                case WSMsgType.PING:
                    with suppress(aiohttp.ClientError, OSError):  # the next `receive` says what is wrong
                        await self._websocket.pong(message.data)
                case WSMsgType.CLOSE:
                    return
                case WSMsgType.CLOSED | WSMsgType.CLOSING | WSMsgType.ERROR:
                    raise self._broken(
                        self._why or str(self._websocket.exception() or "the connection broke")
                    )

    async def ping(self) -> None:
        """Until it is cancelled, or the connection is dead."""
        with suppress(aiohttp.ClientError, OSError):  # `messages` and `send` say what is wrong
            while self._is_alive():
                await asyncio.sleep(self._pace.ping)
                with suppress(TimeoutError):  # the other side does not read
                    await asyncio.wait_for(self._websocket.ping(), self._pace.ping)
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
    if problem.status.reason != "Forbidden":  # of a container runtime, which knows no permissions
        return NotSpoken(f"the cluster does not speak {protocol}{SINCE}: {problem}")
    what = request.path.partition("?")[0].rpartition("/")[2]
    role = f"the role needs the verb create on pods/{what} (before Kubernetes 1.35 also get)"
    return Forbidden(replace(problem.status, message=f"{problem.status.message}; {role}"))
