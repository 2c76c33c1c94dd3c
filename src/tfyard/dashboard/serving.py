"""Serves the page: on this machine for the user who started it, or to many people, each with their own token."""

import asyncio
import logging
import secrets
import socket
import sys
from collections.abc import Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from tfyard.dashboard import app, proxies, security
from tfyard.dashboard.identity import ViewerIdentity
from tfyard.dashboard.one_user import TOKEN, OneUser
from tfyard.dashboard.people import OfferedJobs, People, SessionLimits
from tfyard.dashboard.security import LOOPBACK, PageSettings
from tfyard.dashboard.sessions import Sessions
from tfyard.dashboard.signing_in import SigningIn
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import TfyardError, Usage
from tfyard.kube.bind import Bind
from tfyard.sdk.forwarding import HOST

USUAL_PORT = 8765
LAST_ANSWERS = 1.0
"""Seconds that open streams have to end when the page is stopped."""
LONGEST_ADDRESS = 1 << 16
"""Bytes of an address: what is asked about a hundred marked jobs names all of them."""
LOG = logging.getLogger("tfyard.dashboard.requests")


class Serving(Struct, frozen=True, kw_only=True):
    port: int = 0
    """0: the usual one, or a free one if that is taken."""
    hosts: tuple[str, ...] = ()
    """Other names by which a proxy of this machine reaches it."""
    proxies: tuple[str, ...] = ()
    """Proxies that are believed when they say how the browser sees the page."""
    show: Callable[[str], None]
    """Shows the address to the user."""


async def serve(identity: ViewerIdentity, serving: Serving) -> None:
    """Serve the page to one user until cancelled. Enter in the terminal prints another address."""
    believed = proxies.read(serving.proxies)
    user = OneUser(Viewer(identity))
    base = f"/{secrets.token_urlsafe(12)}"
    listening = _listen(serving.port)
    port = listening.getsockname()[1]
    settings = PageSettings(base=base, hosts=security.hosts(port, serving.hosts), proxies=believed)
    runner = _runner(user, settings)
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()

        def show() -> None:
            serving.show(f"http://{HOST}:{port}{base}/?{TOKEN}={user.new_token()}")

        show()
        _at_each_line(show)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _runner(sessions: Sessions, settings: PageSettings) -> web.AppRunner:
    return web.AppRunner(
        app.make(sessions, settings),
        access_log=None,
        shutdown_timeout=LAST_ANSWERS,
        max_line_size=LONGEST_ADDRESS,
        logger=LOG,
    )


def _is_about_us(record: logging.LogRecord) -> bool:
    """What is no HTTP, or too long, is answered with 400: whoever sends it must not fill the user's terminal."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


LOG.addFilter(_is_about_us)


def _listen(port: int) -> socket.socket:
    """A listening socket on loopback; no option allows another address."""
    try:
        return _bound(port or USUAL_PORT)
    except OSError as problem:
        if port:
            text = f"port {port} of this machine cannot be used: {problem.strerror}"
            raise TfyardError(f"{text}; without --port, a free one is taken") from None
        return _bound(0)


def _bound(port: int) -> socket.socket:
    """A socket that listens already: of two that are only bound, the second one would fail too late."""
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


def _at_each_line(show: Callable[[], None]) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        if sys.stdin.readline():
            show()
        else:
            loop.remove_reader(sys.stdin)

    loop.add_reader(sys.stdin, read)


# --- many people


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
    """Serve the page to many people until cancelled."""
    settings = PageSettings(
        base=serving.path.rstrip("/"),
        hosts=frozenset((*LOOPBACK, *(each.lower() for each in serving.hosts))),
        proxies=proxies.read(serving.proxies),
    )
    if settings.base and not proxies.is_path(settings.base):
        raise Usage(f"--path {serving.path}: write a path such as /tfyard")
    sessions = SigningIn(People(jobs, serving.limits))
    runner = _runner(sessions, settings)
    try:
        await runner.setup()
        serving.show(f"http://{await _listen_at(runner, serving.bind)}{settings.base}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _listen_at(runner: web.AppRunner, bind: Bind) -> str:
    try:
        await web.TCPSite(runner, bind.host or None, bind.port).start()
    except OSError as problem:
        raise Usage(f"cannot listen on {bind.host}:{bind.port}: {problem.strerror or problem}") from problem
    host = f"[{bind.host}]" if ":" in bind.host else bind.host or "0.0.0.0"
    return f"{host}:{runner.addresses[0][1]}"
