"""A proxy in front of the real apiserver that records writes, and delays creates of one kind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from tfyard.kube import Access
from tfyard.kube.credentials import Credentials, Login

HOP_BY_HOP = {"host", "connection", "transfer-encoding", "content-length", "content-encoding"}
UNCOUNTED = ("/leases", "/selfsubjectaccessreviews")
"""Resources that standbys write, too."""


class SlowProxy:
    def __init__(self, access: Access, login: Login, session: aiohttp.ClientSession, delay: float) -> None:
        self._server, self._login, self._session, self._delay = access.cluster.server, login, session, delay
        self.slow_path = ""
        """Only writes whose path has this are delayed."""
        self.slow_kind = "pods"
        self.writes: list[str] = []

    @property
    def pods(self) -> int:
        """How many creates of pods have arrived."""
        return sum(write.startswith("POST ") and write.endswith("/pods") for write in self.writes)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        write = f"{request.method} {request.path}"
        if request.method != "GET" and not any(each in write for each in UNCOUNTED):
            self.writes.append(write)
            if write.endswith(f"/{self.slow_kind}") and self.slow_path in write:
                await asyncio.sleep(self._delay)
        with suppress(ConnectionError):  # of a client that is gone
            return await self._forward(request)
        return web.Response(status=502)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        headers = {name: text for name, text in request.headers.items() if name.lower() not in HOP_BY_HOP}
        url = URL(self._server + request.raw_path, encoded=True)
        async with self._session.request(
            request.method,
            url,
            data=await request.read() or None,
            headers={**headers, **self._login.headers},
            ssl=self._login.tls,
        ) as found:
            kept = {name: text for name, text in found.headers.items() if name.lower() not in HOP_BY_HOP}
            answer = web.StreamResponse(status=found.status, headers=kept)
            await answer.prepare(request)
            async for chunk in found.content.iter_any():
                await answer.write(chunk)
            return answer


@asynccontextmanager
async def slow_proxy(access: Access, kubeconfig: Path, delay: float) -> AsyncIterator[SlowProxy]:
    """`kubeconfig` is written: whoever uses it is an administrator, by this proxy."""
    login = await Credentials(access).current()
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            proxy = SlowProxy(access, login, session, delay)
            application = web.Application()
            application.router.add_route("*", "/{path:.*}", proxy.handle)
            async with TestServer(application) as server:
                kubeconfig.write_text(KUBECONFIG.format(server=str(server.make_url("")).rstrip("/")))
                yield proxy
    finally:
        await asyncio.sleep(0.25)  # a session closes its TLS connections later


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: slow
contexts: [{{name: slow, context: {{cluster: slow, user: slow}}}}]
clusters: [{{name: slow, cluster: {{server: "{server}"}}}}]
users: [{{name: slow, user: {{}}}}]
"""
