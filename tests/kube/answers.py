"""A server with answers by the test, such as no healthy apiserver gives."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from tfyard.kube import ClusterEntry, User, kubeconfig

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[ClusterEntry]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await answer(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(application) as server:  # on a port of this machine, without encryption
        yield ClusterEntry(server=str(server.make_url("")))


def unauthorized() -> web.Response:
    return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)


class Guard:
    """Accepts requests with one of these tokens, and notes the tokens of all requests."""

    def __init__(self, *welcome: str) -> None:
        self.welcome, self.seen = set(welcome), list[str]()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        return web.json_response({}) if self.seen[-1] in self.welcome else unauthorized()


def plugin(folder: Path, script: str, **status: str) -> User:
    """A user whose plugin notes its call, runs `script`, and prints the token `made`."""
    calls, printed = folder / "calls", folder / "printed"
    printed.write_bytes(msgspec.json.encode({"status": {"token": "made", **status}}))
    steps = f"CALLS={calls}; echo called >> $CALLS; {script}; cat {printed}"
    return User(exec=kubeconfig.Exec("sh", "client.authentication.k8s.io/v1", ["-c", steps]))
