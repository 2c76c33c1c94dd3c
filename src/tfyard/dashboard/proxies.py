"""How the browser sees a page: behind a proxy, under another scheme, name and path than this server knows. Only
proxies that were configured are believed: everybody can send these headers."""

import ipaddress
import re
from collections.abc import Sequence

from aiohttp import web
from msgspec import Struct

from tfyard.errors import Usage

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


class AsSeen(Struct, frozen=True):
    scheme: str
    host: str
    prefix: str = ""
    """The path that the proxy has taken away; it has no slash at its end."""


def read(texts: Sequence[str]) -> tuple[Network, ...]:
    """Addresses and networks of proxies; raises with each that is none."""
    networks, problems = list[Network](), list[str]()
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            problems.append(text)
    if problems:
        raise Usage(f"--trust-proxy {', '.join(problems)}: no address or network, such as 10.0.0.0/8")
    return tuple(networks)


def as_seen(request: web.Request, proxies: Sequence[Network]) -> AsSeen:
    """The address as the browser sees it. The configured proxy has added the last value of a header."""
    plain = AsSeen(request.scheme, request.headers.get("Host", "").lower())
    if not _is_from(request, proxies):
        return plain

    def told(name: str, default: str) -> str:
        return request.headers.get(f"X-Forwarded-{name}", default).rpartition(",")[2].strip()

    scheme, prefix = told("Proto", plain.scheme).lower(), told("Prefix", "").rstrip("/")
    return AsSeen(
        scheme if scheme in ("http", "https") else plain.scheme,
        told("Host", plain.host).lower(),
        prefix if is_path(prefix) else "",
    )


def is_path(text: str) -> bool:
    """Whether it can be a path in a cookie: `/tools/tfyard`, or empty."""
    return _PATH.fullmatch(text) is not None


def _is_from(request: web.Request, proxies: Sequence[Network]) -> bool:
    try:
        peer = ipaddress.ip_address(request.remote or "")
    except ValueError:
        return False
    return any(peer in network for network in proxies)
