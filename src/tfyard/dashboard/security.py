"""Decides which requests are answered at all: those to a name of this server, and changes only from its own
pages. Every answer tells the browser to load nothing from elsewhere."""

import re
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from msgspec import Struct

from tfyard.dashboard.proxies import Network, as_seen

_PORT = re.compile(r":\d+$")
SAFE = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class PageSettings(Struct, frozen=True, kw_only=True):
    """Settings about how the page is reached."""

    base: str = ""
    """The path below which everything is: `/` and a random word, or empty. It has no slash at its end."""
    hosts: frozenset[str] = frozenset()
    """Names in the Host header; a name without a port stands for all ports."""
    proxies: tuple[Network, ...] = ()
    """Proxies that are believed when they say how the browser sees the page."""


def hosts(port: int, others: tuple[str, ...] = ()) -> frozenset[str]:
    """The names of a server on loopback, and others, by which a proxy reaches it."""
    return frozenset((*(f"{name}:{port}" for name in LOOPBACK), *(each.lower() for each in others)))


def guard(settings: PageSettings) -> Middleware:
    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        problem = refusal(request, settings)
        if problem:
            return web.Response(status=403, text=f"{problem}\n", headers=HEADERS)
        return await handler(request)

    return guarded


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers to every answer, also to an error or a stream."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")


def refusal(request: web.Request, settings: PageSettings) -> str:
    """Why the request is not answered; empty: it is. A foreign name in Host is a page of somebody else that has
    made its own name point to this machine (DNS rebinding)."""
    seen = as_seen(request, settings.proxies).host
    for host in (request.headers.get("Host", "").lower(), seen):
        if not {host, _PORT.sub("", host)} & settings.hosts:
            return f"this server does not answer to the name {host!r}; `--allow-host` adds a name"
    if request.method in SAFE or _is_own(request, seen):
        return ""
    return "changes are accepted only from the pages of this server: Origin or Sec-Fetch-Site is another's"


def _is_own(request: web.Request, host: str) -> bool:
    """Whether the request comes from a page of this server. No page can set these headers; browsers send the
    first one only by https and to this machine."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    return urlsplit(request.headers.get("Origin", "")).netloc.lower() == host
