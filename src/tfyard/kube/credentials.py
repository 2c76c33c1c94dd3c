"""Credentials: certificates, tokens that are rotated, and exec plugins that print either."""

import asyncio
import base64
import contextlib
import logging
import os
import ssl
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from multidict import CIMultiDict

from tfyard.kube.errors import BadKubeconfig
from tfyard.kube.kubeconfig import Access, Cluster, Exec, User, material

log = logging.getLogger(__name__)

# The kubelet replaces a projected token at 80 % of its life, of which the minimum is ten minutes.
TOKEN_FILE_LIFE = 60.0
EXEC_TIMEOUT = 60.0
# Credentials of an exec plugin are not used in their last second; new ones are requested before that, while the
# old ones are still used, so that no request has to wait for the plugin.
EXEC_MARGIN, EXEC_LEEWAY = 1.0, 9.0
NEVER = float("inf")


class Login(msgspec.Struct, frozen=True):
    """The headers of a request, and the TLS context with the client certificate, if any."""

    headers: CIMultiDict[str]
    tls: ssl.SSLContext | bool


class ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, frozen=True):
    status: ExecStatus


class Credentials:
    """The current login, renewed when it gets old or when the server answers 401."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._login: Login | None = None
        self._ages = self._ends = NEVER
        self._keys: tuple[bytes, ...] = ()
        self._renewal: asyncio.Task[Login] | None = None

    @property
    def renewable(self) -> bool:
        return bool(self._access.user.exec or self._access.user.token_file)

    async def current(self) -> Login:
        """An old login is used until it expires: only then a renewal is waited for."""
        now = time.time()
        if self._login is not None and now < self._ages:
            return self._login
        renewal = self._begin()
        if self._login is not None and now < self._ends:
            return self._login
        return await asyncio.shield(renewal)

    def doubt(self, login: Login) -> None:
        """The server refused `login`: renew, unless somebody already has."""
        if login is self._login:
            self._ages = self._ends = 0.0

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])

    def _begin(self) -> asyncio.Task[Login]:
        """One renewal for all requests, owned by none of them: a request that times out must not cancel it, or a
        plugin that is slower than that would be started again for ever."""
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew())
            self._renewal.add_done_callback(self._settle)
        return self._renewal

    def _settle(self, renewal: "asyncio.Task[Login]") -> None:
        self._renewal = None
        if not renewal.cancelled() and (problem := renewal.exception()):
            log.info("cannot renew the credentials: %s", problem)

    async def _renew(self) -> Login:
        user, status, ages, ends = self._access.user, ExecStatus(token=self._access.user.token), NEVER, NEVER
        if user.exec:
            status = await _run(user.exec, self._access.cluster)
            if status.expiration_timestamp:
                ends = status.expiration_timestamp.timestamp() - EXEC_MARGIN
                ages = ends - EXEC_LEEWAY
        elif user.token_file:
            status, ages = ExecStatus(token=_read(user.token_file)), time.time() + TOKEN_FILE_LIFE
        login = Login(_headers(self._access, status.token), self._tls(status))
        self._login, self._ages, self._ends = login, ages, ends
        return login

    def _tls(self, status: ExecStatus) -> ssl.SSLContext | bool:
        """The same context as long as the certificates stay: a new one would close every connection of the
        pool. But the old one would never trust a cluster whose CA was replaced."""
        keys = (_trusted(self._access.cluster), *_pair(self._access.user, status))
        if self._login is not None and keys == self._keys:
            return self._login.tls
        try:
            made = build_tls(self._access.cluster, *keys)
        except (ssl.SSLError, ValueError) as problem:
            raise BadKubeconfig(f"certificate or key cannot be used: {problem}") from problem
        self._keys = keys
        return made


def _trusted(cluster: Cluster) -> bytes:
    return material(cluster.certificate_authority_data, cluster.certificate_authority)


def _pair(user: User, status: ExecStatus) -> tuple[bytes, bytes]:
    """Certificate and key."""
    if status.client_certificate_data:
        return status.client_certificate_data.encode(), status.client_key_data.encode()
    certificate = material(user.client_certificate_data, user.client_certificate)
    return certificate, material(user.client_key_data, user.client_key)


def build_tls(cluster: Cluster, trusted: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext | bool:
    if cluster.server.startswith("http://"):
        return True  # aiohttp's default
    context = ssl.create_default_context(cadata=trusted.decode() or None)
    # Python 3.13 turned strict checks on, which many clusters' long-lived CAs (no key identifier) fail.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.insecure_skip_tls_verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        with _as_file(certificate + b"\n" + key) as path:
            context.load_cert_chain(path)
    return context


def _headers(access: Access, token: str) -> CIMultiDict[str]:
    user = access.user
    headers = CIMultiDict(
        {"Accept": "application/json", "User-Agent": "tfyard", "Accept-Encoding": "gzip"},
    )
    if token:
        headers["Authorization"] = f"Bearer {token}"
    elif user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        headers["Authorization"] = f"Basic {pair}"
    if user.impersonate:
        headers["Impersonate-User"] = user.impersonate
    for group in user.impersonate_groups or []:
        headers.add("Impersonate-Group", group)
    return headers


def _read(path: str) -> str:
    try:
        with open(path) as file:  # noqa: PTH123 - replaced by a kubelet's symlink swap; only its text matters
            return file.read().strip()
    except OSError as problem:
        raise BadKubeconfig(f"token cannot be read: {problem}") from problem


async def _run(plugin: Exec, cluster: Cluster) -> ExecStatus:
    info: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        info["cluster"] = {"server": cluster.server, **_cluster_info(cluster)}
    asked = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": info}
    chosen = {pair["name"]: pair["value"] for pair in plugin.env or []}
    environment = {**os.environ, **chosen, "KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode()}
    output = await _output([plugin.command, *(plugin.args or [])], environment, plugin.install_hint)
    try:
        return msgspec.json.decode(output, type=ExecCredential).status
    except msgspec.DecodeError as problem:
        raise BadKubeconfig(f"{plugin.command} printed no ExecCredential: {problem}") from problem


def _cluster_info(cluster: Cluster) -> dict[str, Any]:
    trusted = _trusted(cluster)
    return {"certificate-authority-data": base64.b64encode(trusted).decode()} if trusted else {}


async def _output(command: list[str], environment: dict[str, str], hint: str) -> bytes:
    """Its standard error is ours: plugins print instructions for people there ("open this page to log in")."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
    except OSError as problem:
        raise BadKubeconfig(f"{command[0]} cannot be run: {problem}. {hint}".strip()) from problem
    try:
        output, _ = await asyncio.wait_for(process.communicate(), EXEC_TIMEOUT)
    except TimeoutError as problem:
        raise BadKubeconfig(f"{command[0]} gave no credentials within {EXEC_TIMEOUT:.0f} s") from problem
    finally:
        # Its children may still hold its output open: so close our end.
        process._transport.close()  # type: ignore[attr-defined]  # kills it, too; not public
        await process.wait()
    if process.returncode:
        raise BadKubeconfig(f"{command[0]} ended with {process.returncode}. {hint}".strip())
    return output


@contextlib.contextmanager
def _as_file(pem: bytes) -> Iterator[str]:
    """Python's ssl reads certificates from files only; this one is private, and deleted at once."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        yield file.name
