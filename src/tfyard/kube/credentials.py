"""Credentials that are renewed while a client runs for days: rotated token files and exec plugins."""

import asyncio
import logging
import os
import ssl
import time
from contextlib import closing

import msgspec
from multidict import CIMultiDict

from tfyard.kube import login as logins
from tfyard.kube.kubeconfig import Access, ClusterEntry, Exec
from tfyard.kube.login import ExecStatus, Keys

log = logging.getLogger(__name__)

# The kubelet replaces a projected token at 80 % of its life, of which the minimum is ten minutes.
TOKEN_FILE_LIFE = 60.0
# Credentials of an exec plugin are not used in their last second; new ones are requested before that, while the
# old ones are still used, so that no request has to wait for the plugin.
EXEC_MARGIN, EXEC_LEEWAY = 1.0, 9.0
NEVER = float("inf")


class Login(msgspec.Struct, frozen=True):
    """The headers of a request, and the TLS context with the client certificate, if any."""

    headers: CIMultiDict[str]
    tls: ssl.SSLContext | bool


class Credentials:
    """The current login, renewed when it gets old or when the server answers 401."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._login: Login | None = None
        self._ages = self._ends = NEVER
        self._keys: Keys | None = None
        self._renewal: asyncio.Task[Login] | None = None

    @property
    def renewable(self) -> bool:
        return self._access.user.is_renewable

    async def current(self) -> Login:
        """The login for a request. An old one is used until it expires: only then requests wait for a renewal."""
        now = time.time()
        if self._login is not None and now < self._ages:
            return self._login
        renewal = self._begin()
        if self._login is not None and now < self._ends:
            return self._login
        return await asyncio.shield(renewal)

    def doubt(self, login: Login) -> None:
        """Renews after the server refused `login`, unless another request has done so."""
        if login is self._login:
            self._ages = self._ends = 0.0

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])

    def _begin(self) -> asyncio.Task[Login]:
        """Starts one renewal for all requests. A request that times out must not cancel it, or a slower plugin
        would be started again for ever."""
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
            status, ages = ExecStatus(token=logins.read_token(user.token_file)), time.time() + TOKEN_FILE_LIFE
        login = Login(CIMultiDict(logins.headers(self._access, status.token)), self._tls(status))
        self._login, self._ages, self._ends = login, ages, ends
        return login

    def _tls(self, status: ExecStatus) -> ssl.SSLContext | bool:
        """The TLS context, the same one while the certificates stay: a new one closes every connection of the
        pool. But the old one would never trust a cluster whose CA was replaced."""
        keys = logins.keys(self._access, status)
        if self._login is not None and keys == self._keys:
            return self._login.tls
        made = logins.tls(self._access.cluster, keys)
        self._keys = keys
        return True if made is None else made  # True: aiohttp's default


async def _run(plugin: Exec, cluster: ClusterEntry) -> ExecStatus:
    """Runs a plugin with our standard error: plugins print instructions there ("open this page to log in")."""
    # A pipe of our own: children of the plugin may hold it open after its end, and only this one can be closed.
    output, (ours, theirs) = asyncio.StreamReader(), os.pipe()
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(ours, "rb")
    )
    with closing(reading):
        process = await _start(plugin, cluster, theirs)
        try:
            async with asyncio.timeout(logins.EXEC_TIMEOUT):
                printed, code = await output.read(), await process.wait()
        except TimeoutError as problem:
            raise logins.plugin_too_slow(plugin) from problem
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return logins.plugin_status(plugin, printed, code)


async def _start(plugin: Exec, cluster: ClusterEntry, output: int) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *(plugin.args or []),
            env=logins.plugin_environment(plugin, cluster),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
        )
    except OSError as problem:
        raise logins.plugin_missing(plugin, problem) from problem
    finally:
        os.close(output)
