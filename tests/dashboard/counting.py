"""The real apiserver behind a server that counts what it is asked, before it passes it on."""

import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tfyard.kube import ClusterEntry
from tfyard.kube.kubeconfig import material
from tfyard.kube.login import tls
from tfyard.testing import ControlPlane


class Counting:
    def __init__(self, server: str, trust: ssl.SSLContext | None) -> None:
        self._server, self._trust = server, trust
        self.asked = Counter[str]()
        """`GET`, `WATCH` or `POST`, and the last words of the path -> how often."""
        self.cluster = ClusterEntry()

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        verb = "WATCH" if request.query.get("watch") else request.method
        self.asked[f"{verb} {request.path.rpartition('/')[2]}"] += 1
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Accept", "Content-Type")
            if name in request.headers
        }
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method,
                self._server + request.path_qs,
                headers=headers,
                data=await request.read(),
                ssl=self._trust or True,
            ) as answer,
        ):
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers.get("Content-Type", "")}
            )
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    def total(self) -> int:
        return self.asked.total()


@asynccontextmanager
async def counting(plane: ControlPlane) -> AsyncIterator[Counting]:
    entry = plane.admin.cluster
    authority = material(entry.certificate_authority_data, entry.certificate_authority)
    counter = Counting(entry.server, tls(entry, (authority, b"", b"")))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", counter.pass_on)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        counter.cluster = ClusterEntry(server=f"http://127.0.0.1:{runner.addresses[0][1]}")
        yield counter
    finally:
        await runner.cleanup()
