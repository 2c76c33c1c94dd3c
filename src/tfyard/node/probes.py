"""Probes and hooks: a command in the container, a request to the pod, a connection, or a pause."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from tfyard.model import Manifest

from .engine import ContainerProcess, Engine

NOT_SUPPORTED = "gRPC probes are not supported by this node; the probe is taken to succeed"
FOREVER = float("inf")
LONGEST_ANSWER = 60.0
"""Seconds after which a request is given up, however long its probe waits."""


class Target:
    """A container that runs, as probes and hooks reach it."""

    def __init__(self, engine: Engine, process: ContainerProcess, container: Manifest, address: str) -> None:
        self._engine, self._process, self._container, self._address = engine, process, container, address

    async def check(self, action: Manifest, timeout: float) -> str:
        """Run the action of a probe or a hook, and return what went wrong; empty if nothing did."""
        try:
            async with asyncio.timeout(None if timeout == FOREVER else timeout):
                return await self._check(action)
        except TimeoutError:
            return f"timed out after {timeout:g}s"
        except (OSError, ValueError) as error:  # ValueError: a header that cannot be sent
            return str(error) or type(error).__name__

    async def _check(self, action: Manifest) -> str:
        if command := action.get("exec"):
            code, output = await self._engine.run_beside(self._process, command["command"])
            return "" if code == 0 else (output or f"command ended with exit code {code}")
        if request := action.get("httpGet"):
            return await self._get(request)
        if socket := action.get("tcpSocket"):
            return await self._connect(socket)
        if pause := action.get("sleep"):
            await asyncio.sleep(float(pause["seconds"]))
        return ""

    async def _get(self, request: Manifest) -> str:
        host, port = request.get("host") or self._address, self._port(request["port"])
        path = str(request.get("path") or "/")
        url = f"{str(request.get('scheme') or 'HTTP').lower()}://{host}:{port}/{path.removeprefix('/')}"
        headers = {each["name"]: each["value"] for each in request.get("httpHeaders") or []}
        headers = {"User-Agent": "kube-probe/tfyard", "Accept": "*/*", **headers}
        status = await asyncio.to_thread(http_status, url, headers)
        return "" if 200 <= status < 400 else f"HTTP probe failed with statuscode: {status}"

    async def _connect(self, socket: Manifest) -> str:
        host = socket.get("host") or self._address
        _, writer = await asyncio.open_connection(host, self._port(socket["port"]))
        writer.close()
        return ""

    def _port(self, port: int | str) -> int:
        """A number, or the name of one of the container's ports."""
        named = {each.get("name"): each["containerPort"] for each in self._container.get("ports") or []}
        if isinstance(port, str) and port not in named:
            raise ValueError(f"the container has no port {port}")
        return int(named.get(port, port))


def http_status(url: str, headers: dict[str, str]) -> int:
    """Status of a GET without a proxy, whatever certificate the server has. OSError if there is no answer."""
    # 20 ms, and few containers have such a probe.
    from http.client import HTTPException
    from urllib import request
    from urllib.error import HTTPError

    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    opener = request.build_opener(request.ProxyHandler({}), request.HTTPSHandler(context=tls))
    try:
        with opener.open(request.Request(url, headers=headers), timeout=LONGEST_ANSWER) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
    except HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from None


async def repeat(probe: Manifest, target: Target, on_result: Callable[[bool, str], Awaitable[None]]) -> None:
    """Probe for ever, and report each time that a threshold is reached: healthy or not, and what was wrong."""
    await asyncio.sleep(float(probe.get("initialDelaySeconds") or 0))
    successes = failures = 0
    while True:
        problem = await target.check(probe, float(probe.get("timeoutSeconds") or 1))
        successes, failures = (0, failures + 1) if problem else (successes + 1, 0)
        if failures >= int(probe.get("failureThreshold") or 3):
            await on_result(False, problem)
            failures = 0
        elif successes >= int(probe.get("successThreshold") or 1):
            await on_result(True, "")
        await asyncio.sleep(float(probe.get("periodSeconds") or 10))
