"""A synchronous client for commands that send a few requests, and for notebooks, which run a loop already.

The same requests and errors as transport.py. It imports neither asyncio nor aiohttp, which take longer to import
than such a command may last.
"""

import http.client
import random
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self, TypeVar, overload
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from tfyard.kube import login as logins
from tfyard.kube.decoding import decode
from tfyard.kube.errors import (
    BadKubeconfig,
    NotFound,
    Transient,
    Unauthorized,
    Undecodable,
    Unreachable,
    build_error,
)
from tfyard.kube.kubeconfig import Access, ClusterEntry, Exec
from tfyard.kube.login import ExecStatus, Headers
from tfyard.kube.requests import Request, get, may_repeat
from tfyard.model.backoff import Backoff

T = TypeVar("T")

ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
TIMEOUT = 30.0
ATTEMPTS = 4
CHUNK = 1 << 16
BACKOFF = Backoff(first=0.2, longest=5.0, jitter=0.5)


class SyncClient:
    """One connection to one apiserver as one user: `with SyncClient(access) as client`."""

    def __init__(self, access: Access, timeout: float = TIMEOUT) -> None:
        self.access, self._timeout = access, timeout
        self._root = urlsplit(access.cluster.server).path.rstrip("/")
        """Path of the API's root: behind a proxy for several clusters, such as Rancher, it is not empty."""
        self._headers: Headers = ()
        self._connection: http.client.HTTPConnection | None = None
        self._is_interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def interrupt(self) -> None:
        """Called from another thread: what this client waits for fails at once, and it sends nothing more."""
        self._is_interrupted, connection = True, self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    @overload
    def send(self, request: Request) -> Any: ...
    @overload
    def send(self, request: Request, into: msgspec.json.Decoder[T]) -> T: ...
    def send(self, request: Request, into: msgspec.json.Decoder[Any] = ANYTHING) -> Any:
        """The decoded answer, or one of kube.errors. Retried only where that cannot act twice."""
        return decode(into, self.read(request))

    def find(self, path: str) -> Any:
        """The object at this path; None: there is none."""
        try:
            return self.send(get(path))
        except NotFound:
            return None

    def read(self, request: Request) -> bytes:
        """The answer as bytes, such as a log."""
        backoff, renewed = BACKOFF, False
        while True:
            try:
                return self._once(request)
            except Unauthorized as problem:
                if renewed or not self.access.user.is_renewable:
                    raise _with_advice(problem) from None
                renewed = True
                self.close()
            except Transient as problem:
                backoff = backoff.next()
                is_over = backoff.failures == ATTEMPTS or isinstance(problem.__cause__, TimeoutError)
                if is_over or not may_repeat(request, problem):
                    raise  # a caller that waited for the whole timeout need not wait for it again
                time.sleep(max(problem.retry_after or 0.0, 0.0) + backoff.delay(random.random()))

    def lines(
        self, request: Request, silence: float, begun: Callable[[], None] = lambda: None
    ) -> Iterator[bytes]:
        """Lines of a stream, such as a watch: it begins within the client's timeout, and may then pause for
        `silence` seconds. Nothing else can be sent meanwhile. `begun` is called once the server has agreed."""
        response = self._open(request)
        if self._connection is not None and self._connection.sock is not None:
            self._connection.sock.settimeout(silence)
        try:
            if response.status >= 400:
                raise build_error(response.status, response.read(), response.getheader("Retry-After", ""))
            begun()
            while (line := response.readline()).endswith(b"\n"):  # not half a line of a broken connection
                yield line
        except (OSError, http.client.HTTPException) as problem:
            raise self._unreachable(problem, sent=True) from problem
        finally:
            self.close()

    def chunks(self, request: Request) -> Iterator[bytes]:
        """An answer of any size, such as a log, in pieces. Nothing else can be sent meanwhile."""
        response, is_whole = self._open(request), False
        try:
            if response.status >= 400:
                raise build_error(response.status, response.read(), response.getheader("Retry-After", ""))
            while chunk := response.read1(CHUNK):
                yield chunk
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            is_whole = not response.will_close
        except (OSError, http.client.HTTPException) as problem:
            raise self._unreachable(problem, sent=True) from problem
        finally:
            if not is_whole:
                self.close()

    def _once(self, request: Request) -> bytes:
        response = self._open(request)
        try:
            answer = _decompressed(response.read(), response.getheader("Content-Encoding", ""))
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self._unreachable(problem, sent=True) from problem
        if response.will_close:
            self.close()
        if response.status >= 400:
            raise build_error(response.status, answer, response.getheader("Retry-After", ""))
        if response.getheader("Content-Type", "").startswith("text/html"):
            page = "answers with a web page: is there a login or a proxy in between?"
            raise Undecodable(f"{self.access.cluster.server} {page}", answer)
        return answer

    def _open(self, request: Request) -> http.client.HTTPResponse:
        connection, sent = self._connect(), False
        try:
            if self._is_interrupted:
                raise ConnectionAbortedError("interrupted")
            if connection.sock is None:
                connection.connect()
            sent = True
            _ask(connection, replace(request, path=self._root + request.path), self._headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self._unreachable(problem, sent) from problem

    def _unreachable(self, problem: Exception, sent: bool) -> Unreachable:
        server = self.access.cluster.server
        if isinstance(problem, TimeoutError):
            return Unreachable(f"{server}: no answer within {self._timeout:g} s", sent)
        words = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        return Unreachable(f"{server}: {words or type(problem).__name__}", sent)

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            access, status = self.access, _status(self.access)
            self._headers = logins.headers(access, status.token)
            context = logins.tls(access.cluster, logins.keys(access, status))
            self._connection = _connection(access.cluster, context, self._timeout)
        return self._connection


class _TlsConnection(http.client.HTTPSConnection):
    """A connection that checks the certificate against another name than the address (`tls-server-name`)."""

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port, context=context)
        self._tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _ask(connection: http.client.HTTPConnection, request: Request, headers: Headers) -> None:
    """Sends a request; not by `request()`, which takes a mapping: a header may occur twice."""
    connection.putrequest(request.method, request.path, skip_accept_encoding=True)
    if request.body is not None:
        length = str(len(request.body))
        headers = (*headers, ("Content-Type", request.content_type), ("Content-Length", length))
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders(request.body)


def _connection(
    cluster: ClusterEntry, context: ssl.SSLContext | None, timeout: float
) -> http.client.HTTPConnection:
    server, proxy = urlsplit(cluster.server), urlsplit(cluster.proxy_url)
    first = proxy if cluster.proxy_url else server
    if proxy.scheme not in ("", "http"):
        raise BadKubeconfig(f"proxy-url {cluster.proxy_url}: only http:// proxies are supported here")
    host, port = first.hostname or "", first.port or (443 if first.scheme == "https" else 80)
    if context is None:
        connection = http.client.HTTPConnection(host, port)
    else:
        connection = _TlsConnection(host, port, context, cluster.tls_server_name or server.hostname or "")
    connection.timeout = timeout
    if cluster.proxy_url:
        connection.set_tunnel(server.hostname or "", server.port or 443)
    return connection


def _status(access: Access) -> ExecStatus:
    user = access.user
    if user.exec:
        return _run(user.exec, access.cluster)
    return ExecStatus(token=logins.read_token(user.token_file) if user.token_file else user.token)


def _run(plugin: Exec, cluster: ClusterEntry) -> ExecStatus:
    """Runs a plugin with our standard error: plugins print instructions there ("open this page to log in")."""
    command = [plugin.command, *(plugin.args or [])]
    try:
        done = subprocess.run(
            command,
            env=logins.plugin_environment(plugin, cluster),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=logins.EXEC_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise logins.plugin_too_slow(plugin) from problem
    except OSError as problem:
        raise logins.plugin_missing(plugin, problem) from problem
    return logins.plugin_status(plugin, done.stdout, done.returncode)


def _decompressed(answer: bytes, encoding: str) -> bytes:
    if encoding != "gzip":
        return answer
    return zlib.decompress(answer, zlib.MAX_WBITS | 16)


def _with_advice(problem: Unauthorized) -> Unauthorized:
    """Most servers say nothing but `Unauthorized`."""
    what = "the credentials of the kubeconfig are wrong, or have expired"
    fix = "log in again; `kubectl config view --minify` shows the user"
    answer = problem.status.message or "Unauthorized"
    return Unauthorized(msgspec.structs.replace(problem.status, message=f"{answer}: {what}; {fix}"))
