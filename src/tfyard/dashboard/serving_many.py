"""Serves the page to many people, each with a token of the cluster: in a Pod, or behind a proxy."""

import asyncio
from collections.abc import Callable

from aiohttp import web
from msgspec import Struct

from tfyard.controller.bind import Bind
from tfyard.dashboard import app, proxies
from tfyard.dashboard.people import OfferedJobs, People, SessionLimits
from tfyard.dashboard.security import LOOPBACK, PageSettings
from tfyard.dashboard.serving import LAST_ANSWERS
from tfyard.dashboard.signing_in import SigningIn
from tfyard.errors import Usage


class ServingMany(Struct, frozen=True, kw_only=True):
    bind: Bind
    hosts: tuple[str, ...] = ()
    """Names by which people and proxies reach it; those of this machine are always allowed, for port-forward."""
    proxies: tuple[str, ...] = ()
    path: str = ""
    """The path below which everything is, where a proxy leaves it in the address."""
    limits: SessionLimits = SessionLimits()
    show: Callable[[str], None]


async def serve_many(jobs: OfferedJobs, serving: ServingMany) -> None:
    """Until it is cancelled."""
    settings = PageSettings(
        base=serving.path.rstrip("/"),
        hosts=frozenset((*LOOPBACK, *(each.lower() for each in serving.hosts))),
        proxies=proxies.read(serving.proxies),
    )
    if settings.base and not proxies.is_path(settings.base):
        raise Usage(f"--path {serving.path}: write a path such as /tfyard")
    sessions = SigningIn(People(jobs, serving.limits))
    runner = web.AppRunner(app.make(sessions, settings), access_log=None, shutdown_timeout=LAST_ANSWERS)
    try:
        await runner.setup()
        serving.show(f"http://{await _listen(runner, serving.bind)}{settings.base}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, bind: Bind) -> str:
    try:
        await web.TCPSite(runner, bind.host or None, bind.port).start()
    except OSError as problem:
        raise Usage(f"cannot listen on {bind.host}:{bind.port}: {problem.strerror or problem}") from problem
    host = f"[{bind.host}]" if ":" in bind.host else bind.host or "0.0.0.0"
    return f"{host}:{runner.addresses[0][1]}"
