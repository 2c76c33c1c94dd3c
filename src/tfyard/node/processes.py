"""The client's side of the supervisor, for asyncio: starts containers, signals them, and reports their exits."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from tfyard.errors import TfyardError

from . import launch
from .linux_namespaces import Mount
from .messages import MessageDecoder, encode
from .orphans import adopt_orphans, kill_adopted


class ContainerCommand(Struct, frozen=True, kw_only=True):
    """A container as a process."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    hostname: str = ""
    """Hostname that the process sees; empty: that of this machine."""
    stdio: tuple[str, ...] = ()
    """Three paths that become its input, output and errors; empty: no input, and all output goes to the log."""
    stdin: bool = False
    """Whether it has the standard input of the supervisor, as long as `stdio` names no other."""
    tty: bool = False
    """Whether `stdio` is a terminal, which the process controls."""
    mounts: tuple[Mount, ...] = ()
    files: tuple[Mount, ...] = ()
    """Files that are mounted for this process alone. Processes with the same `mounts` share a view of the disk,
    which takes milliseconds to make; these take none."""
    cgroup: str = ""
    """The file by which the process enters its control group; empty: it has none."""
    network: str = ""
    """The network namespace that the process joins, as a path; empty: it stays in this one."""
    beside: str = ""
    """The id of a process whose view of the disk, files included, it joins if that runs; empty: none."""


class Exit(Struct, frozen=True):
    code: int
    cpu: float = 0.0
    """Seconds of CPU time, its children included."""
    peak: int = 0
    """Most memory that it ever used, in bytes."""
    signalled: bool = False
    """Whether we sent it a signal before it ended."""
    problem: str = ""
    """Why it could not be started; empty: it was."""
    is_lost: bool = False
    """Whether it ended with its supervisor, by no fault of its own."""
    is_out_of_memory: bool = False
    """Whether the process was killed because it took more memory than its limit."""


class SupervisorLost(TfyardError):
    """The supervisor died; its containers died with it."""


def start_message(id: str, command: ContainerCommand, log: Path) -> dict[str, Any]:
    return {"op": "start", "id": id, "log": str(log), **asdict(command)}


class Processes:
    """All processes of one run. `async with` starts the supervisor; leaving ends every one of them, and removes
    the directory `scratch`, even if we are killed. `log`: written if the supervisor breaks. `on_unfinished` is
    called with lines that processes have begun and not ended; only whole ones are in their logs."""

    def __init__(
        self,
        log: Path,
        on_exit: Callable[[str, Exit], None],
        scratch: str = "",
        on_unfinished: Callable[[str, bytes], None] = lambda _id, _line: None,
    ) -> None:
        self.pids: dict[str, int] = {}
        self._pending: set[str] = set()
        """Containers that we asked to start and that have not ended, even if the supervisor never started them."""
        self._starting: dict[str, asyncio.Future[None]] = {}
        self.namespaces = False
        self._log, self._on_exit, self._scratch = log, on_exit, scratch
        self._on_unfinished = on_unfinished
        self._ready: asyncio.Future[None] | None = None
        self._leaving = self._is_lost = False

    async def __aenter__(self) -> "Processes":
        adopt_orphans()  # else process 1 would adopt them if the supervisor is killed
        self._supervisor = launch.take()
        channel = self._supervisor.channel
        self._reader, self._writer = await asyncio.open_connection(sock=channel)
        self._send({"op": "scratch", "path": self._scratch})
        self._ready = asyncio.get_running_loop().create_future()
        self._listening = asyncio.create_task(self._listen())
        await self._ready
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leaving = True
        self._writer.close()  # the supervisor takes this for our end, and kills what is left
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._listening.cancel()
        if not self._is_lost:
            await _end_of(self._supervisor.process.pid)
        self._supervisor.close()
        adopt_orphans(False)

    def start(self, id: str, command: ContainerCommand, log: Path) -> None:
        self._pending.add(id)
        self._send(start_message(id, command, log))

    async def started(self, id: str) -> None:
        """Wait until the process has been started."""
        if id in self._pending and id not in self.pids:
            await self._starting.setdefault(id, asyncio.get_running_loop().create_future())

    def forget(self, command: ContainerCommand) -> None:
        """Free what the supervisor keeps for these mounts: no other process will be started with them."""
        self._send({"op": "forget", "mounts": command.mounts, "files": command.files})

    def check(self) -> None:
        """Raise SupervisorLost if no process can be started any more."""
        if self._is_lost:
            raise SupervisorLost("the supervisor of this run was killed, and every task with it")

    def signal(self, id: str, number: signal.Signals) -> None:
        self._send({"op": "signal", "id": id, "signal": int(number)})

    def _send(self, message: dict[str, Any]) -> None:
        if not self._is_lost:  # else the next `check` reports the loss
            self._writer.write(encode(message))

    async def _listen(self) -> None:
        decoder = MessageDecoder()
        with contextlib.suppress(ConnectionResetError):  # the supervisor ended, and something was left unread
            while data := await self._reader.read(1 << 16):
                for message in decoder.feed(data):
                    self._handle(message)
        if not self._leaving:
            self._lose_supervisor()

    def _handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"event": "ready", "namespaces": allowed}:
                self.namespaces = allowed
                assert self._ready is not None
                self._ready.set_result(None)
            case {"event": "started", "id": id, "pid": pid}:
                self.pids[id] = pid
                self._tell_started(id)
            case {"event": "unfinished", "id": id, "line": line}:
                self._on_unfinished(id, line)
            case {"event": "exited", "id": id, **exit}:
                self._exited(id, Exit(**exit))

    def _exited(self, id: str, exit: Exit) -> None:
        self.pids.pop(id, None)
        self._pending.discard(id)
        self._tell_started(id)
        self._on_exit(id, exit)

    def _tell_started(self, id: str) -> None:
        if (waiting := self._starting.pop(id, None)) and not waiting.done():
            waiting.set_result(None)

    def _lose_supervisor(self) -> None:
        """End all containers after the supervisor was killed or failed: none may go on without it."""
        self._supervisor.process.wait()
        kill_adopted(self.pids.values())
        self._is_lost = True
        output = self._supervisor.output().strip()
        self._log.write_text(output)
        for id in list(self._pending):
            self._exited(id, Exit(128 + signal.SIGKILL, is_lost=True))
        if self._ready is not None and not self._ready.done():
            last = " ".join(output.splitlines()[-1:])
            self._ready.set_exception(SupervisorLost(f"the supervisor did not start: {last}"))


async def _end_of(pid: int) -> None:
    """Wait for the end of a process by a descriptor of the kernel, without a thread."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
