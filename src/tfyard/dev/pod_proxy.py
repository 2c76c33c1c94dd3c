"""The HTTP proxy of pods, by which pip, git and downloads work in a network that has no route out.

The pods' *_PROXY variables name it. Names and addresses of the cluster are connected inside, as the pod sees them:
gRPC and urllib send those to the proxy, too, because they do not understand networks in NO_PROXY. All others go
through `Outside`, and through the machine's own proxy, if it has one.
"""

import asyncio
import base64
import socket
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from msgspec import Struct

from tfyard.dev.connections import Listener, Stream, join
from tfyard.dev.outside import NoWayOut, Outside
from tfyard.node.network import PODS, BoxNetwork

PORT = 3128
HOP_BY_HOP = (b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive")


class Head(Struct, frozen=True):
    """The beginning of a request to a proxy."""

    method: str
    url: SplitResult
    version: str
    headers: tuple[bytes, ...]

    @property
    def is_tunnel(self) -> bool:
        return self.method == "CONNECT"

    @property
    def address(self) -> tuple[str, int]:
        return self.url.hostname or "", self.url.port or (443 if self.is_tunnel else 80)


class BadRequest(Exception):
    """The request is not one for a proxy."""


class PodProxy:
    """The proxy until the end of `async with PodProxy(network, outside)`, in the cluster's network."""

    def __init__(self, network: BoxNetwork, outside: Outside) -> None:
        self._network, self._outside = network, outside
        self._listener = Listener(self._accept)

    async def __aenter__(self) -> Self:
        await self._listener.start(self._network.address, PORT)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.close()

    async def _accept(self, stream: Stream) -> None:
        reader, writer = stream
        try:
            head = parse(await reader.readuntil(b"\r\n\r\n"))
            other = await self._connect(head, writer.get_extra_info("peername")[0], writer)
        except (BadRequest, ValueError, asyncio.LimitOverrunError) as problem:
            await _refuse(writer, 400, str(problem))
        except asyncio.IncompleteReadError:
            return  # the client closed the connection without a request
        except OSError as problem:
            await _refuse(writer, 502, str(problem))
        else:
            await join(stream, other)

    async def _connect(self, head: Head, pod_address: str, writer: asyncio.StreamWriter) -> Stream:
        """A connection to the target, with the head of the request sent as the target needs it."""
        proxy = None
        inside = self._inside(head.address[0], pod_address)
        if inside:
            other = await asyncio.open_connection(inside, head.address[1])
        else:
            proxy = machine_proxy(head)
            host, port = (proxy.hostname or "", proxy.port or 80) if proxy else head.address
            other = await _open(await self._outside.connect(host, port))
        if proxy is not None:
            other[1].write(for_proxy(head, proxy))
        elif head.is_tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            other[1].write(for_server(head))
        return other

    def _inside(self, host: str, pod_address: str) -> str:
        """The address of a host of the cluster, as seen by the pod; empty: the host is not in the cluster."""
        if self._network.has(host):
            return host
        return next(iter(self._network.hosts.addresses(host, pod_address)), "")


def environment(network: BoxNetwork) -> dict[str, str]:
    """The variables by which programs in pods find the proxy."""
    url = f"http://{network.address}:{PORT}"
    direct = f"localhost,127.0.0.1,::1,{PODS},{network.services},.svc,.cluster.local"
    names = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": direct}
    return names | {name.lower(): value for name, value in names.items()}


def parse(data: bytes) -> Head:
    line, *headers = data.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3:
        raise BadRequest("this is a proxy for HTTP")
    method, target, version = words
    url = urlsplit(f"//{target}" if method == "CONNECT" else target)
    if not url.hostname or (method != "CONNECT" and url.scheme != "http"):
        raise BadRequest(f"this is a proxy for HTTP and CONNECT; it cannot get {target}")
    return Head(method, url, version, tuple(headers))


def for_server(head: Head) -> bytes:
    """The head as the server expects it. One request per connection: the next may be for another server."""
    path = head.url._replace(scheme="", netloc="").geturl() or "/"
    kept = [header for header in head.headers if header.partition(b":")[0].strip().lower() not in HOP_BY_HOP]
    line = f"{head.method} {path} {head.version}".encode("latin-1")
    return b"\r\n".join([line, *kept, b"Connection: close", b"", b""])


def for_proxy(head: Head, proxy: SplitResult) -> bytes:
    """The head for the machine's own proxy, with the password that the machine has for it."""
    target = head.url.netloc if head.is_tunnel else head.url.geturl()
    kept = [header for header in head.headers if header.partition(b":")[0].strip().lower() not in HOP_BY_HOP]
    if proxy.username:
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        kept.append(b"Proxy-Authorization: Basic " + base64.b64encode(login))
    if not head.is_tunnel:
        kept.append(b"Connection: close")
    line = f"{head.method} {target} {head.version}".encode("latin-1")
    return b"\r\n".join([line, *kept, b"", b""])


def machine_proxy(head: Head) -> SplitResult | None:
    """The machine's proxy for a request, by the *_PROXY variables of this process; None: no proxy."""
    proxies = getproxies_environment()
    address = proxies.get("https" if head.is_tunnel else "http")
    if not address or proxy_bypass(head.address[0], proxies):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme != "http":
        raise NoWayOut(f"the machine's proxy {proxy.scheme}://{proxy.hostname} is not an http:// one")
    return proxy


async def _open(connected: socket.socket) -> Stream:
    return await asyncio.open_connection(sock=connected)


async def _refuse(writer: asyncio.StreamWriter, code: int, why: str) -> None:
    """Send an error, with the reason in the status line and in the body: few clients print the body."""
    reason = " ".join(why.split())
    body = f"tfyard dev: {reason}\n".encode()
    head = f"HTTP/1.1 {code} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()
