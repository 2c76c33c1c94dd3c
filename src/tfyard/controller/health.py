"""The HTTP server for the kubelet and Prometheus: /healthz, /readyz, /metrics."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from aiohttp import web
from msgspec import Struct

from tfyard.errors import Usage

from .metrics import CONTENT_TYPE

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Reasons = Callable[[], Sequence[str]]
"""Why not; empty if all is well."""


class Bind(Struct, frozen=True):
    """Where to listen: on this machine only, by default. A kubelet probes from outside: its pods say `:8080`."""

    host: str = "127.0.0.1"
    port: int = 8080

    @classmethod
    def parse(cls, text: str) -> "Bind":
        """`:8080`, `127.0.0.1:8080` or `[::1]:8080`, as Go programs write it; an empty host is all of them."""
        host, colon, port = text.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise Usage(f"{text!r} is not an address to listen on; write host:port, such as :8080")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


class Questions(Struct, frozen=True, kw_only=True):
    """How the answers are found. Called for each request, because a cached answer may no longer be true."""

    metrics: Callable[[], str]
    why_not_ready: Reasons = list
    why_not_healthy: Reasons = list


class HealthServer:
    """`async with HealthServer(bind, questions) as server`: it serves until the block ends."""

    def __init__(self, bind: Bind, questions: Questions) -> None:
        self._bind, self._questions = bind, questions
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", _answering(questions.why_not_healthy))
        app.router.add_get("/readyz", _answering(questions.why_not_ready))
        # A scrape in progress may finish; a keep-alive connection must not delay the release of the lease.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind.host or None, self._bind.port).start()
        except OSError as problem:
            await self._runner.cleanup()
            where = f"{self._bind.host}:{self._bind.port}"
            raise Usage(f"cannot listen on {where}: {problem.strerror or problem}") from problem
        log.info("serving /metrics, /healthz and /readyz on port %d", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The port that was given; for 0, the one that the system chose."""
        return int(self._runner.addresses[0][1])

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._questions.metrics().encode(), headers={"Content-Type": CONTENT_TYPE})


def _answering(why_not: Reasons) -> Handler:
    """A probe counts 503 as a failure; the text is for people."""

    async def answer(_: web.Request) -> web.Response:
        reasons = why_not()
        text = "".join(f"{reason}\n" for reason in reasons)
        return web.Response(text=text or "ok\n", status=503 if reasons else 200)

    return answer
