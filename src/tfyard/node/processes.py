"""The asker's side of the supervisor, for asyncio: start containers, signal them, hear of their exits."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

import tfyard
from tfyard.errors import TfyardError

from .linux_namespaces import Mount
from .orphans import MARK, adopt_orphans, kill_adopted

PACKAGES = str(Path(tfyard.__file__).parents[1])
START = """import sys; sys.path.append({packages!r})
from tfyard.node.supervisor import main; main({fd}, **{options})"""


class Command(Struct, frozen=True, kw_only=True):
    """A container as a process."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    mounts: tuple[Mount, ...] = ()
    cgroup: str = ""
    """The file by which the process enters its control group; empty: it has none."""


class Exit(Struct, frozen=True):
    code: int
    cpu: float = 0.0
    """Seconds that it computed, its children included."""
    peak: int = 0
    """Most memory that it ever used, in bytes."""
    signalled: bool = False
    """We sent it a signal before it ended."""


class SupervisorLost(TfyardError):
    """The supervisor died; its containers died with it."""


def start_supervisor(
    log: Path, *, namespaces: bool, scratch: str = ""
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The supervisor and our end of its socket. When that end closes, it kills its containers, removes the
    directory `scratch` and ends. `namespaces`: keep containers in a PID namespace where the system allows it."""
    ours, theirs = socket.socketpair()
    options = {"namespaces": namespaces, "scratch": scratch}
    start = START.format(packages=PACKAGES, fd=theirs.fileno(), options=options)
    with theirs, log.open("ab") as output:
        # -I -S: no site packages, no PYTHON* variables; it is up in some 30 ms. File names are encoded as here.
        supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", "-c", start],
            pass_fds=[theirs.fileno()],
            # It belongs to no container, even if we run in one ourselves.
            env={name: value for name, value in os.environ.items() if name != MARK},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return supervisor, ours


def start_message(id: str, command: Command, log: Path) -> dict[str, Any]:
    return {"op": "start", "id": id, "log": str(log), **asdict(command)}


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


class Processes:
    """All processes of one run. `async with` starts the supervisor; leaving ends every one of them, and removes
    the directory `scratch`, even if we are killed."""

    def __init__(self, log: Path, on_exit: Callable[[str, Exit], None], scratch: str = "") -> None:
        self.pids: dict[str, int] = {}
        self._pending: set[str] = set()
        """Containers that we asked to start and that have not ended, even if the supervisor never started them."""
        self.namespaces = False
        self._log, self._on_exit, self._scratch = log, on_exit, scratch
        self._ready: asyncio.Future[None] | None = None
        self._leaving = self._is_lost = False

    async def __aenter__(self) -> "Processes":
        adopt_orphans()  # were the supervisor killed, they would otherwise escape to process 1
        self._supervisor, channel = start_supervisor(self._log, namespaces=True, scratch=self._scratch)
        self._reader, self._writer = await asyncio.open_connection(sock=channel, limit=1 << 20)
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
        await asyncio.get_running_loop().run_in_executor(None, self._supervisor.wait)
        adopt_orphans(False)

    def start(self, id: str, command: Command, log: Path) -> None:
        self._pending.add(id)
        self._send(start_message(id, command, log))

    def check(self) -> None:
        """SupervisorLost if nothing can be started any more."""
        if self._is_lost:
            raise SupervisorLost("the supervisor of this run was killed, and every task with it")

    def signal(self, id: str, number: signal.Signals) -> None:
        self._send({"op": "signal", "id": id, "signal": int(number)})

    def _send(self, message: dict[str, Any]) -> None:
        if not self._is_lost:  # if it is lost, whoever runs the job learns so from `check`
            self._writer.write(encode(message))

    async def _listen(self) -> None:
        with contextlib.suppress(ConnectionResetError):  # its end, if something was left unread
            async for line in self._reader:
                self._handle(json.loads(line))
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
            case {"event": "exited", "id": id, **exit}:
                self._exited(id, Exit(exit["code"], exit["cpu"], exit["peak"], exit["signalled"]))

    def _exited(self, id: str, exit: Exit) -> None:
        self.pids.pop(id, None)
        self._pending.discard(id)
        self._on_exit(id, exit)

    def _lose_supervisor(self) -> None:
        """It was killed or broke: no container may go on without it."""
        self._supervisor.wait()
        kill_adopted(self.pids.values())
        self._is_lost = True
        for id in list(self._pending):
            self._exited(id, Exit(128 + signal.SIGKILL))
        if self._ready is not None and not self._ready.done():
            text = self._log.read_text(errors="replace").strip().splitlines()
            self._ready.set_exception(SupervisorLost(f"the supervisor did not start: {' '.join(text[-1:])}"))
