"""A small client for the REST API of MLflow: one connection, and no redirects, which would carry credentials away.

It takes the variables of MLflow's own client: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or
MLFLOW_TRACKING_TOKEN, MLFLOW_TRACKING_SERVER_CERT_PATH, MLFLOW_TRACKING_INSECURE_TLS; and those of proxies.
"""

import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlencode, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from tfyard.errors import TfyardError
from tfyard.tracking.addresses import is_loopback, public_address

API = "/api/2.0/mlflow/"
TIMEOUT = 10.0
LARGEST = 1 << 22
"""Bytes of an answer that are read."""
LONGEST_MESSAGE = 200
AUTHORITIES = "MLFLOW_TRACKING_SERVER_CERT_PATH"
_LATER = (408, 425, 429)


class MLflowUnreachable(TfyardError):
    """The server gives no answer, or none at the moment."""


class MLflowRefused(TfyardError):
    """The server refuses, and would do so again. `code`: MLflow's own word for it."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class MLflowServer:
    def __init__(self, uri: str, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        self.uri, self._environ, self._timeout = uri, environ, timeout
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: str) -> Any:
        return self._call("GET", f"{path}?{urlencode(query)}", None)

    def post(self, path: str, body: object, *, is_repeatable: bool = True) -> Any:
        """`is_repeatable`: the request may be carried out twice."""
        if not is_repeatable:
            self.close()  # only on an idle connection is a request sent again
        return self._call("POST", path, json.dumps(body).encode())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        target = urlsplit(f"{self.uri.rstrip('/')}{API}{path}")
        try:
            response, answer = self._exchange(method, target, body)
        except ssl.SSLCertVerificationError as problem:
            self.close()
            fix = f"{AUTHORITIES}=FILE names the authorities that are"
            raise MLflowRefused(
                f"its certificate is not trusted ({problem.verify_message}); {fix}"
            ) from problem
        except (OSError, http.client.HTTPException, ValueError) as problem:
            self.close()
            raise MLflowUnreachable(_words(problem, self._timeout)) from problem
        if response.will_close or not response.isclosed():
            self.close()
        if response.status >= 300:
            raise _refusal(response, answer)
        return _decoded(answer)

    def _exchange(
        self, method: str, target: SplitResult, body: bytes | None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """The answer; once more if the connection was idle, and the server has closed it meanwhile."""
        was_idle = self._connection is not None
        connection, proxy = self._connected(target), self._proxy(target)
        through = _proxy_headers(proxy) if target.scheme == "http" else {}
        headers = {"Content-Type": "application/json", **through, **credentials(self._environ)}
        try:
            connection.request(method, self._target(target), body, headers)
            response = connection.getresponse()
        except ConnectionError:
            self.close()
            if not was_idle:
                raise
            return self._exchange(method, target, body)
        return response, response.read(LARGEST)

    def _target(self, target: SplitResult) -> str:
        """What the request asks for: a proxy is told the server, too, unless it is a tunnel."""
        path = f"{target.path}?{target.query}" if target.query else target.path
        is_told = self._proxy(target) and target.scheme == "http"
        return f"http://{target.netloc}{path}" if is_told else path

    def _proxy(self, target: SplitResult) -> str:
        host = target.hostname or ""
        proxies = getproxies_environment()
        if is_loopback(self.uri) or proxy_bypass(host, proxies):
            return ""
        return proxies.get(target.scheme, "")

    def _connected(self, target: SplitResult) -> http.client.HTTPConnection:
        if self._connection is None:
            proxy = self._proxy(target)
            first = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else target
            host, port = first.hostname or "", first.port
            if target.scheme == "https":
                connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                    host, port, timeout=self._timeout, context=_tls(self._environ)
                )
                if proxy:
                    connection.set_tunnel(target.hostname or "", target.port or 443, _proxy_headers(proxy))
            else:
                connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
            self._connection = connection
        return self._connection


def credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """The header with the user's credentials. As in MLflow's own client, a password comes before a token."""
    user, password = (environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    if user and password:
        return {"Authorization": f"Basic {_basic(user, password)}"}
    token = environ.get("MLFLOW_TRACKING_TOKEN", "")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    return {"Proxy-Authorization": f"Basic {_basic(unquote(parts.username), unquote(parts.password or ''))}"}


def _basic(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()


def _tls(environ: Mapping[str, str]) -> ssl.SSLContext:
    authorities = environ.get(AUTHORITIES, "")
    try:
        context = ssl.create_default_context(cafile=authorities or None)
    except ssl.SSLError:
        raise MLflowRefused(f"{AUTHORITIES}={authorities}: it has no certificates") from None
    except OSError as problem:
        raise MLflowRefused(f"{AUTHORITIES}={authorities}: {problem.strerror}") from None
    if environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _words(problem: Exception, timeout: float) -> str:
    if isinstance(problem, TimeoutError):
        return f"no answer within {timeout:g} s"
    words = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    return words or type(problem).__name__


def _refusal(response: http.client.HTTPResponse, answer: bytes) -> TfyardError:
    status = response.status
    if status < 400:
        where = public_address(response.getheader("Location", "") or "another address")
        return MLflowRefused(
            f"it redirects to {where}, which is not followed; give the address of MLflow itself"
        )
    if status in (401, 403):
        fix = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
        return MLflowRefused(f"it refuses these credentials ({status}); {fix}")
    if status >= 500 or status in _LATER:
        return MLflowUnreachable(f"it answers with {status} {response.reason}")
    try:
        body = json.loads(answer)
        code, message = str(body["error_code"]), str(body.get("message") or "")
    except (ValueError, TypeError, KeyError):
        return MLflowRefused(f"no MLflow server is there ({status} {response.reason}); check the address")
    return MLflowRefused(f"it refuses: {message[:LONGEST_MESSAGE] or code}", code)


def _decoded(answer: bytes) -> Any:
    try:
        return json.loads(answer or b"{}")
    except ValueError:
        text = "it answers with a web page: is there a login in between, or no MLflow server?"
        raise MLflowRefused(text) from None
