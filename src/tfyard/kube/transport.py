"""Sends a request and decodes the answer, in an event loop."""

import asyncio
import os
import random
import socket
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from math import inf
from typing import Any, Self, TypeVar, overload

import aiohttp
import msgspec
from yarl import URL

from tfyard.kube.credentials import Credentials, Login
from tfyard.kube.decoding import decode
from tfyard.kube.errors import KubeError, Transient, Unauthorized, Unreachable, build_error
from tfyard.kube.kubeconfig import Access
from tfyard.kube.requests import Request, may_repeat
from tfyard.model.backoff import Backoff

T = TypeVar("T")

ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)

PAGES_AT_ONCE = 8
FAREWELL = 1.0
"""Seconds that a server has to confirm the end of a WebSocket."""
BIGGEST_MESSAGE = 16 << 20

_before_sending: ContextVar[Callable[[], None] | None] = ContextVar("before_sending", default=None)
_longest_wait: ContextVar[float] = ContextVar("longest_wait", default=inf)


@contextmanager
def before_sending(check: Callable[[], None]) -> Iterator[None]:
    """Within this block, `check` is called just before a request is written to its connection: after it waited for
    a slot, and again before each retry. If it raises, the request is not sent."""
    token = _before_sending.set(check)
    try:
        yield
    finally:
        _before_sending.reset(token)


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Within this block, a request is not repeated if the server asks for a longer wait: its caller can do other
    work meanwhile, and say what it waits for."""
    token = _longest_wait.set(seconds)
    try:
        yield
    finally:
        _longest_wait.reset(token)


class CheckedRequest(aiohttp.ClientRequest):
    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        check = _before_sending.get()
        if check is not None:
            check()
        return await super().send(conn)


class Limits(msgspec.Struct, frozen=True):
    """Limits of retries and connections. Flow control is the server's (429); `connections` limits the requests in
    flight, because each has a socket, and a TLS handshake costs more than most requests. Streams do not count.
    Connections are given in turn, so there are more than an operator needs at once: it shares them out before."""

    connections: int = 320
    connect_timeout: float = 10.0
    answer_timeout: float = 30.0
    attempts: int = 6
    backoff: Backoff = Backoff(first=0.1, longest=10.0, jitter=0.5)


DEFAULT_LIMITS = Limits()


class Client:
    """One pool of connections to one apiserver as one user: `async with Client(access) as client`."""

    def __init__(self, access: Access, limits: Limits = DEFAULT_LIMITS) -> None:
        self.access, self.limits = access, limits
        self._credentials = Credentials(access)
        self._server = access.cluster.server.rstrip("/")
        self._extra: dict[str, Any] = {}
        if access.cluster.proxy_url:
            self._extra["proxy"] = access.cluster.proxy_url
        if access.cluster.tls_server_name:
            self._extra["server_hostname"] = access.cluster.tls_server_name
        self._session: aiohttp.ClientSession | None = None
        self._seats = asyncio.Semaphore(limits.connections)
        self.pages = asyncio.Semaphore(PAGES_AT_ONCE)
        """Taken by each page of a list: each may be many megabytes."""
        self._clock = ServerClock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=self._new_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=CheckedRequest,
            timeout=self._timeout(self.limits.answer_timeout),
            middlewares=(_refusing_upgrades,),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._credentials.close()
        if self._session is not None:
            await self._session.close()
            await self._shut_down_sockets()

    def now(self) -> datetime:
        """The server's time; this machine's until the first answer."""
        return self._clock.now()

    @overload
    async def send(self, request: Request) -> Any: ...
    @overload
    async def send(self, request: Request, into: msgspec.json.Decoder[T]) -> T: ...
    async def send(self, request: Request, into: msgspec.json.Decoder[Any] = ANYTHING) -> Any:
        """The decoded answer, or one of kube.errors. Retried only where that cannot act twice."""
        return decode(into, await self.read(request))

    async def read(self, request: Request) -> bytes:
        """The answer as bytes; otherwise like `send`."""
        return await self._with_retries(request, self._once)

    @asynccontextmanager
    async def stream(self, request: Request, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer as a stream: watches and followed logs. Unreachable after `idle` seconds of silence."""
        login = await self._credentials.current()
        async with await self._open(request, login, idle) as response:
            with _aborting(response):
                yield self._chunks(response)

    @asynccontextmanager
    async def websocket(
        self, request: Request, protocol: str
    ) -> "AsyncIterator[aiohttp.ClientWebSocketResponse[bool]]":
        """An upgraded connection. It is always a GET; the request's method tells whether it may be repeated."""
        websocket = await self._with_retries(request, partial(self._upgrade, protocol))
        try:
            yield websocket
        except BaseException:
            shut_down(websocket)
            raise
        finally:
            await websocket.close()

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        new = socket.socket(*address[:3])
        new.setblocking(False)
        self._sockets.add(new)
        return new

    async def _shut_down_sockets(self) -> None:
        """Closes aborted connections, which may wait up to half a minute for the TLS close of a server that does
        not answer: they must not be left to a closed event loop."""
        for _ in range(10):
            lingering = [each for each in self._sockets if each.fileno() >= 0]
            for each in lingering:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            if not lingering:
                return
            await asyncio.sleep(0)

    async def _with_retries(self, request: Request, send: Callable[[Request, Login], Awaitable[T]]) -> T:
        backoff, renewed = self.limits.backoff, False
        while True:
            login = await self._credentials.current()
            try:
                return await send(request, login)
            except Unauthorized:
                # This does not count as an attempt: the request is only tried with new credentials.
                if renewed or not self._credentials.renewable:
                    raise
                renewed = True
            except Transient as problem:
                backoff, asked = backoff.next(), problem.retry_after or 0.0
                is_last = backoff.failures == self.limits.attempts or asked > _longest_wait.get()
                if is_last or not may_repeat(request, problem):
                    raise
                # Never sooner than the server asked, and never all clients at the same moment.
                await asyncio.sleep(asked + backoff.delay(random.random()))

    async def _once(self, request: Request, login: Login) -> bytes:
        async with self._seats, await self._open(request, login, self.limits.answer_timeout) as response:
            with self._translating():
                return await response.read()

    async def _open(self, request: Request, login: Login, silence: float) -> aiohttp.ClientResponse:
        with self._translating():
            sent = self._clock.local()
            response = await self._ask(request, login, silence)
            self._clock.read(response.headers.get("Date", ""), sent, self._clock.local())
            if response.status < 400:
                return response
            async with response:
                if response.status == 401:
                    self._credentials.doubt(login)
                raise await _error(response)

    async def _upgrade(
        self, protocol: str, request: Request, login: Login
    ) -> "aiohttp.ClientWebSocketResponse[bool]":
        assert self._session is not None, "use `async with Client(...)`"
        try:
            with self._translating():
                made: aiohttp.ClientWebSocketResponse[bool] = await self._session.ws_connect(
                    URL(self._server + request.path, encoded=True),
                    protocols=(protocol,),
                    headers=login.headers,
                    ssl=login.tls,
                    timeout=aiohttp.ClientWSTimeout(ws_close=FAREWELL),
                    autoping=False,
                    max_msg_size=BIGGEST_MESSAGE,
                    **self._extra,
                )
                return made
        except Unauthorized:
            self._credentials.doubt(login)
            raise

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        with self._translating():
            async for chunk in response.content.iter_any():
                yield chunk

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Turns network errors into Unreachable; only around our own reads, not for an OSError of the consumer."""
        try:
            yield
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise _unreachable(self._server, problem) from problem

    def _ask(self, request: Request, login: Login, silence: float) -> Awaitable[aiohttp.ClientResponse]:
        """Sends without a total timeout: a request may queue behind thousands of others for a connection."""
        assert self._session is not None, "use `async with Client(...)`"
        headers = login.headers
        if request.body is not None:
            headers = headers.copy()
            headers["Content-Type"] = request.content_type
        return self._session.request(
            request.method,
            URL(self._server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            ssl=login.tls,
            timeout=self._timeout(silence),
            allow_redirects=False,
            **self._extra,
        )

    def _timeout(self, silence: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(sock_connect=self.limits.connect_timeout, sock_read=silence)


def _unreachable(server: str, problem: Exception) -> Unreachable:
    words = str(problem) or type(problem).__name__
    if isinstance(problem, aiohttp.ClientConnectorError) and not isinstance(problem, aiohttp.ClientSSLError):
        code, text = problem.os_error.errno, problem.os_error.strerror  # without the address of an SSLContext
        words = os.strerror(code) if code and code > 0 else text or words
    return Unreachable(f"{server}: {words}", sent=not isinstance(problem, NOT_SENT))


@contextmanager
def _aborting(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Aborts a stream that is left half-way: a clean TLS close would wait for a peer that may be dead."""
    transport = response.connection.transport if response.connection else None
    try:
        yield
    except BaseException:
        if transport is not None:
            transport.abort()
        raise


async def _refusing_upgrades(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raises the server's error for a refused or redirected upgrade, before aiohttp closes the connection."""
    response = await handler(request)
    if request.headers.get("Upgrade") and response.status != 101:
        async with response:
            raise await _error(response)
    return response


def shut_down(websocket: "aiohttp.ClientWebSocketResponse[bool]") -> None:
    """Closes a WebSocket that is left half-way, without waiting for a peer that may be dead."""
    connection = websocket.get_extra_info("socket")
    with suppress(OSError):
        if connection is not None:
            connection.shutdown(socket.SHUT_RDWR)


async def _error(response: aiohttp.ClientResponse) -> KubeError:
    waiting = response.headers.get("Retry-After", "")
    return build_error(response.status, await response.read(), waiting)


SECOND = timedelta(seconds=1)
"""Precision of Date headers, which are rounded down."""
AGREEING_ANSWERS = 3
"""Successive answers, of different seconds, that must prove the same correction before it is used."""


# CLOCK_MONOTONIC stops while a machine is suspended.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""Servers that say that it is earlier have no clock."""
UNREADABLE_DATES = (ValueError, OverflowError)


class ServerClock:
    """The server's time, by the Date of its answers: this machine's clock, corrected as far as they prove. A slow
    answer, or one that was read late, proves little.

    One wrong Date must not expire deadlines, and one of several apiservers may disagree, or be the only one that
    has answered yet. So the clock changes by at most a minute per minute. Only at the start is it put back at
    once, if the first answers agree that this machine is ahead: nothing expires too early by that."""

    def __init__(self) -> None:
        self._correction = timedelta(0)
        self._start = datetime.now(UTC) - timedelta(seconds=time.clock_gettime(_CLOCK))
        self._last, self._at = "", self.local()
        self._first, self._agreeing = timedelta(0), 0

    def local(self) -> datetime:
        """This machine's time at the start, and what has passed since: its clock may be set meanwhile."""
        return self._start + timedelta(seconds=time.clock_gettime(_CLOCK))

    def now(self) -> datetime:
        return self.local() + self._correction

    def read(self, date: str, sent: datetime, received: datetime) -> None:
        """`date` is the header of an answer; `sent` and `received` are by `local`."""
        if date == self._last:
            return
        self._last = date
        with suppress(*UNREADABLE_DATES):  # written by a proxy
            answered = parsedate_to_datetime(date).astimezone(UTC)
            if answered < EARLIEST:
                return
            self._correct(answered - received, answered + SECOND - sent, received)

    def _correct(self, least: timedelta, most: timedelta, received: datetime) -> None:
        if self._agreeing < AGREEING_ANSWERS:
            self._agree(least, most)
        else:
            correction = min(max(self._correction, least), most)
            step = min(abs(correction - self._correction), received - self._at)
            self._correction += step if correction > self._correction else -step
        self._at = received

    def _agree(self, least: timedelta, most: timedelta) -> None:
        """Counts answers in a row that prove the same correction; enough of them put the clock back."""
        if not least - SECOND <= self._first <= most + SECOND:
            self._agreeing = 0
        known = self._first if self._agreeing else timedelta(0)
        self._first, self._agreeing = min(max(known, least), most), self._agreeing + 1
        if self._agreeing == AGREEING_ANSWERS:
            self._correction = min(self._first, timedelta(0))
