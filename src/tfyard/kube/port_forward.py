"""A TCP connection into a pod, through the apiserver and the kubelet.

One WebSocket is one connection (v4.channel.k8s.io), which every kubelet and container runtime speaks. kubectl
sends SPDY frames through one WebSocket instead; there, one connection that is not read stops all others.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tfyard.kube import requests
from tfyard.kube.errors import PortRefused
from tfyard.kube.transport import Client
from tfyard.kube.websockets import Channels, channels

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
PORT_NUMBER = 2
"""Bytes: each channel begins with its port, for clients that ask for several."""


@asynccontextmanager
async def connect(client: Client, namespace: str, pod: str, port: int) -> AsyncIterator["Connection"]:
    request = requests.get(requests.PODS.path(namespace, pod, "portforward"), {"ports": str(port)})
    async with channels(client, request, PROTOCOL) as found:
        yield Connection(found, port)


class Connection:
    """The protocol cannot close one direction alone: it ends when the pod or this side closes it."""

    def __init__(self, found: Channels, port: int) -> None:
        self._channels, self._port = found, port

    async def write(self, data: bytes) -> None:
        """Waits while the pod is slow."""
        await self._channels.send(DATA, data)

    async def data(self) -> AsyncIterator[bytes]:
        """What the pod sends, until it closes the connection. PortRefused if it never was one."""
        skip, problem = {DATA: PORT_NUMBER, ERROR: PORT_NUMBER}, b""
        async for channel, data in self._channels.messages():
            rest, skip[channel] = data[skip.get(channel, 0) :], max(skip.get(channel, 0) - len(data), 0)
            if channel == ERROR:
                problem += rest
            elif channel == DATA and rest:
                yield rest
        if problem:
            raise PortRefused(problem.decode(errors="replace").strip() or f"port {self._port} is refused")
