"""The HTTPS API of a kubelet, which serves `kubectl logs`, `exec`, `cp`, `attach` and `port-forward`.

Only the apiserver may call it. It has checked the user's permissions before, and identifies itself by its client
certificate.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Self
from weakref import WeakSet

import msgspec
from aiohttp import web

from tfyard.kubelet.log_stream import LogOptions, stream
from tfyard.kubelet.port_forward import port_forward
from tfyard.kubelet.remote_command import attach, exec_
from tfyard.kubelet.runtime import Containers, NoSuchContainer

CLIENT = "kube-apiserver-kubelet-client"
"""The common name of the apiserver's client certificate."""
LAST_CHANCE = 1.0
"""Seconds for open requests when the server ends; logs that are followed would never end by themselves."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class KubeletServer:
    """`async with KubeletServer(containers, tls, address) as server`: it serves at `server.port` until the block
    ends. `routes`: further routes for the apiserver."""

    def __init__(
        self,
        containers: Containers,
        tls: ssl.SSLContext,
        address: str,
        port: int = 0,
        routes: Iterable[web.RouteDef] = (),
    ) -> None:
        self._containers, self._tls, self._routes = containers, tls, routes
        self.address, self.port = address, port
        self._transports: WeakSet[asyncio.Transport] = WeakSet()

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._note_connection, _only_the_apiserver])
        container = "/{namespace}/{pod}/{container}"
        app.add_routes(self._routes)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get(f"/containerLogs{container}", self._logs)
        for method in ("GET", "POST"):
            app.router.add_route(method, f"/exec{container}", self._exec)
            app.router.add_route(method, f"/attach{container}", self._attach)
            app.router.add_route(method, "/portForward/{namespace}/{pod}", self._port_forward)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=LAST_CHANCE, access_log=None
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, self.address, self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the server. Connections are aborted: TLS would wait for the apiserver to confirm each end."""
        await self._runner.cleanup()
        for transport in list(self._transports):
            transport.abort()
        await asyncio.sleep(0)

    @web.middleware
    async def _note_connection(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note the connection of each request: aiohttp forgets it when it begins to close it."""
        if request.transport is not None:
            self._transports.add(request.transport)
        return await handler(request)

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        """Send a log. Every problem is a 400: the apiserver passes on the text of no other status."""
        try:
            options = msgspec.convert(dict(request.query), LogOptions, strict=False)
            if request.query.get("stream", "All") != "All":
                raise NoSuchContainer("stdout and stderr of a container are one log on this node")
            source = self._containers.logs(*_container(request), previous=options.previous)
        except (msgspec.ValidationError, NoSuchContainer) as problem:
            raise web.HTTPBadRequest(text=str(problem)) from None
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        await response.prepare(request)
        async with aclosing(stream(source, options)) as parts:
            async for data in parts:
                await response.write(data)
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        return await exec_(request, self._containers, _container(request))

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        return await attach(request, self._containers, _container(request))

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        where = (request.match_info["namespace"], request.match_info["pod"])
        return await port_forward(request, self._containers, where)


def server_tls(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS with a certificate of the server, for clients with a certificate of this authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority))
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@web.middleware
async def _only_the_apiserver(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse other users: they have certificates of the same authority, and would bypass permissions here."""
    certificate = request.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    if names != [CLIENT]:
        raise web.HTTPForbidden(
            text=f"only the apiserver may ask this kubelet, not {', '.join(names) or 'an unknown client'}\n"
        )
    return await handler(request)


def _container(request: web.Request) -> tuple[str, str, str]:
    parts = request.match_info
    return parts["namespace"], parts["pod"], parts["container"]
