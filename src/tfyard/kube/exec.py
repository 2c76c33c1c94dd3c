"""Runs a command in a container of a pod, as `kubectl exec` does: by WebSocket, protocol v5.

Only that version can close the command's standard input. Kubernetes 1.30 and later speak it, whatever the
container runtime does.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tfyard.kube.errors import KubeError, Status, Unreachable
from tfyard.kube.requests import PODS, Request
from tfyard.kube.transport import Client
from tfyard.kube.websockets import Channels, channels

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class ExecFailed(KubeError):
    """The node could not start the command."""


class Ended(Status, frozen=True, rename="camel"):
    """The last message."""

    status: str = ""


_endings = msgspec.json.Decoder(Ended)


class Command(Struct, frozen=True, kw_only=True):
    namespace: str
    pod: str
    container: str
    argv: tuple[str, ...]
    stdin: bool = False
    tty: bool = False

    @property
    def request(self) -> Request:
        """POST: not to be repeated, because the command may have run."""
        flags = {"stdin": self.stdin, "stdout": True, "stderr": not self.tty, "tty": self.tty}
        query = [("container", self.container), *((name, str(flag).lower()) for name, flag in flags.items())]
        words = [("command", word) for word in self.argv]
        return Request("POST", f"{PODS.path(self.namespace, self.pod, 'exec')}?{urlencode([*query, *words])}")


@asynccontextmanager
async def start(client: Client, command: Command) -> AsyncIterator["Process"]:
    """The command, running. What still runs when the block ends loses its streams."""
    async with channels(client, command.request, PROTOCOL) as found:
        yield Process(found, client.access.cluster.server)


class Process:
    def __init__(self, found: Channels, server: str) -> None:
        self._channels, self._server = found, server
        self._status = b""
        self._problem: KubeError | None = None
        self._is_read = False
        self._over = asyncio.Event()

    async def write(self, data: bytes) -> None:
        """To its standard input. Waits while the other side is slow, so memory stays bounded."""
        if data:
            await self._channels.send(STDIN, data)

    async def close_stdin(self) -> None:
        await self._channels.send(CLOSE, bytes([STDIN]))

    async def resize(self, width: int, height: int) -> None:
        """Of its terminal."""
        await self._channels.send(RESIZE, msgspec.json.encode({"Width": width, "Height": height}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """1 (standard output) or 2 (standard error) and what was written, until the process has ended."""
        self._is_read = True
        try:
            async for channel, data in self._channels.messages():
                if channel in (STDOUT, STDERR):
                    yield channel, data
                elif channel == ERROR:
                    # Not the end: output may come after it.
                    self._status += data
        except KubeError as problem:
            if not self._status:
                self._problem = problem
                raise
        finally:
            self._over.set()

    async def wait(self) -> int:
        """Its exit code. Its output is thrown away, unless somebody reads it."""
        if not self._is_read:
            async for _ in self.output():
                continue
        await self._over.wait()
        if self._problem:
            raise self._problem
        if not self._status:
            raise Unreachable(f"{self._server}: closed before the command ended", sent=True)
        return _exit_code(self._status)


def _exit_code(answer: bytes) -> int:
    try:
        status = _endings.decode(answer)
    except msgspec.DecodeError:
        raise ExecFailed(answer.decode(errors="replace")) from None
    causes = (status.details or {}).get("causes") or []
    codes = [str(cause.get("message")) for cause in causes if cause.get("reason") == "ExitCode"]
    if status.reason == "NonZeroExitCode" and codes and codes[0].isdecimal():
        return int(codes[0])
    if status.status != "Success":
        raise ExecFailed(status.message or status.reason)
    return 0
