"""The other end of the supervisor: containers are started and signalled here, and their ends heard of."""

import asyncio
import contextlib
import ctypes
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

from tfyard.errors import TfyardError

from .linux_namespaces import Mount
from .orphans import MARK, kill_inherited

PR_SET_CHILD_SUBREAPER = 36


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
    """The supervisor died; its tasks died with it."""


class Processes:
    """All processes of one run. `async with` starts the supervisor; leaving ends every one of them."""

    def __init__(self, log: Path, on_exit: Callable[[str, Exit], None]) -> None:
        self.pids: dict[str, int] = {}
        self._open: set[str] = set()
        """Who was to be started and has not ended, be it that the supervisor never came to it."""
        self.namespaces = False
        self._log, self._on_exit = log, on_exit
        self._ready: asyncio.Future[None] | None = None
        self._leaving = self._is_lost = False

    async def __aenter__(self) -> "Processes":
        # Were the supervisor killed, its orphans would come to us instead of getting lost.
        _inherit_orphans(True)
        ours, theirs = socket.socketpair()
        with self._log.open("ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-P", "-m", "tfyard.node.supervisor", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                # It is nobody's task, even if we are one ourselves.
                env={name: value for name, value in os.environ.items() if name != MARK},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        self._ready = asyncio.get_running_loop().create_future()
        self._listening = asyncio.create_task(self._listen())
        await self._ready
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leaving = True
        self._writer.close()  # the supervisor takes the end of the socket for ours, and kills what is left
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._listening.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._supervisor.wait)
        _inherit_orphans(False)

    def start(self, id: str, command: Command, log: Path) -> None:
        self._open.add(id)
        self._say(
            op="start",
            id=id,
            argv=command.argv,
            env=command.env,
            cwd=command.cwd,
            log=str(log),
            mounts=command.mounts,
            cgroup=command.cgroup,
        )

    def check(self) -> None:
        """SupervisorLost if nothing can be started any more."""
        if self._is_lost:
            raise SupervisorLost("the supervisor of this run was killed, and every task with it")

    def signal(self, id: str, number: signal.Signals) -> None:
        self._say(op="signal", id=id, signal=int(number))

    def _say(self, **message: Any) -> None:
        if self._is_lost:
            return  # nobody hears it, and whoever runs the job is about to ask us
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self) -> None:
        with contextlib.suppress(ConnectionResetError):  # its end, if something was left unread
            async for line in self._reader:
                self._hear(json.loads(line))
        if not self._leaving:
            self._lost()

    def _hear(self, message: dict[str, Any]) -> None:
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
        self._open.discard(id)
        self._on_exit(id, exit)

    def _lost(self) -> None:
        """Killed from outside, or broken: no task may go on unsupervised."""
        self._supervisor.wait()
        kill_inherited(self.pids.values())
        self._is_lost = True
        for id in list(self._open):
            self._exited(id, Exit(128 + signal.SIGKILL))
        if self._ready is not None and not self._ready.done():
            text = self._log.read_text(errors="replace").strip().splitlines()
            self._ready.set_exception(SupervisorLost(f"the supervisor did not start: {' '.join(text[-1:])}"))


def _inherit_orphans(yes: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0)
