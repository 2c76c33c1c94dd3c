"""The logs of scripted pods: what a kubelet answers for them, as the test says, and who has asked for what."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from tfyard.kube import Client, Patch, requests
from tfyard.kubelet.server import server_tls
from tfyard.testing import ControlPlane

ADDRESS = "127.0.0.1"


class LogServer:
    """Serves the logs of the pods of one node to the apiserver."""

    def __init__(self) -> None:
        self.lines: dict[str, tuple[datetime, str]] = {}
        """Name of a pod -> its last line."""
        self.asked: list[tuple[str, float, dict[str, str]]] = []
        """(pod, time on the clock of the event loop, query)"""
        self.is_silent: set[str] = set()
        """Pods about which nobody gets an answer."""

    def write(self, pod: str, text: str) -> None:
        self.lines[pod] = datetime.now(UTC), text

    def times(self, pod: str) -> list[float]:
        return [at for name, at, _ in self.asked if name == pod]

    async def answer(self, request: web.Request) -> web.Response:
        pod = request.match_info["pod"]
        self.asked.append((pod, asyncio.get_running_loop().time(), dict(request.query)))
        if pod in self.is_silent:
            await asyncio.Event().wait()
        at, text = self.lines.get(pod, (None, ""))
        return web.Response(text=f"{at:%Y-%m-%dT%H:%M:%S.%f}123Z {text}\n" if at else "")


@asynccontextmanager
async def logs_of(plane: ControlPlane, client: Client, node: str) -> AsyncIterator[LogServer]:
    """The logs of a node that exists, from a server where its object says that its kubelet is."""
    served, app = LogServer(), web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", served.answer)
    pair = plane.kubelet_certificate(node, ADDRESS)
    certificate, key = plane.folder / f"{node}.crt", plane.folder / f"{node}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        tls = server_tls(certificate, key, plane.folder / "ca.crt")
        await web.TCPSite(runner, ADDRESS, 0, ssl_context=tls).start()
        endpoint = {"kubeletEndpoint": {"Port": runner.addresses[0][1]}}
        status = {"addresses": [{"type": "InternalIP", "address": ADDRESS}], "daemonEndpoints": endpoint}
        path = requests.NODES.path(name=node, subresource="status")
        await client.send(requests.patch(path, {"status": status}, Patch.STRATEGIC))
        yield served
    finally:
        await runner.cleanup()
