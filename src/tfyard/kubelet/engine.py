"""The processes of containers, of their probes and hooks, and of `kubectl exec`: over one supervisor, which is
started anew if it is lost."""

import asyncio
import fcntl
import itertools
import os
import pty
import signal
import struct
import termios
import time
from collections.abc import Awaitable, Callable
from functools import partial, reduce
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from tfyard.node.logs import tail
from tfyard.node.memory import MachineMeter, MemoryLimits, RecentUse, Use
from tfyard.node.processes import Command, Exit, Processes, SupervisorLost

WINDOW = 15.0
"""Seconds over which the use of CPU is told: as often as a metrics-server asks."""
MACHINE = ""
"""Among the uses: that of the whole machine."""


class Ended(Struct, frozen=True):
    code: int
    is_out_of_memory: bool = False


class Process:
    """One that was started. `ended` is done when it has."""

    def __init__(self, id: str, command: Command) -> None:
        self.id, self.command = id, command
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.beside: set[Process] = set()
        """Those that were started inside the same container; they end with it."""


class Engine:
    """`async with` starts the supervisor; leaving ends every process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, Process] = {}
        self._numbers = itertools.count(1)
        self._starting = asyncio.Lock()
        self.has_namespaces = False
        """Whether containers can have views of the disk; true also while a lost supervisor is replaced."""
        self.recent = RecentUse(WINDOW)
        """By process, and of the machine."""
        self._machine = MachineMeter()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def start(self, id: str, command: Command, log: Path, limit: float | None = None) -> Process:
        """`limit`: bytes of memory."""
        await self._renew()
        process = self._running[id] = Process(id, self._memory.limit(id, command, limit))
        self._processes.start(id, process.command, log)
        return process

    def signal(self, process: Process, number: signal.Signals) -> None:
        if not process.ended.done():
            self._processes.signal(process.id, number)

    async def run_beside(self, process: Process, argv: list[str]) -> tuple[int, str]:
        """Run a command inside a container: its exit code and the end of its output. It is killed if nobody waits
        for it any more."""
        log = self._folder / f"beside-{next(self._numbers)}.log"
        started = await self.start_beside(process, replace(process.command, argv=argv), log)
        try:
            ended = await asyncio.shield(started.ended)
            return ended.code, tail(log)
        finally:
            self.signal(started, signal.SIGKILL)
            log.unlink(missing_ok=True)

    async def attach(self, process: Process, argv: list[str], *, stdin: bool, tty: bool) -> "AttachedProcess":
        """Run a command inside a container, with descriptors for whoever is to talk with it."""
        start = partial(self.start_beside, process, log=Path(os.devnull))
        return await self._start_attached(
            replace(process.command, argv=argv), start, _terminal() if tty else _pipes(stdin)
        )

    async def start_interactive(
        self, id: str, command: Command, limit: float | None, *, tty: bool
    ) -> "AttachedProcess":
        """As `start`, with descriptors in place of a log."""
        start = partial(self.start, id, log=Path(os.devnull), limit=limit)
        return await self._start_attached(command, start, _terminal() if tty else _pipes(stdin=True))

    async def _start_attached(
        self, command: Command, start: Callable[..., Awaitable[Process]], ends: "Ends"
    ) -> "AttachedProcess":
        tty = ends.stderr is None
        env = {"TERM": "xterm", **command.env} if tty else command.env
        try:
            started = await start(command=replace(command, env=env, stdio=ends.paths, tty=tty))
            await self._processes.started(started.id)
        except BaseException:
            ends.close_ours()
            raise
        finally:
            ends.close_theirs()
        return AttachedProcess(self, started, ends)

    async def start_beside(self, process: Process, command: Command, log: Path) -> Process:
        started = await self.start(f"{process.id}/{next(self._numbers)}", command, log)
        process.beside.add(started)
        started.ended.add_done_callback(lambda _: process.beside.discard(started))
        if process.ended.done():
            self.signal(started, signal.SIGKILL)
        return started

    def use(self, process: Process) -> tuple[Use, float] | None:
        """Of a container with all that was started inside it, and of how many seconds; None if it is not known."""
        own = self.recent.of(process.id)
        if own is None:
            return None
        others = [found for each in process.beside if (found := self.recent.of(each.id))]
        return reduce(Use.plus, (use for use, _ in others), own[0]), own[1]

    def forget(self, process: Process) -> None:
        """Nothing else will be started in its container."""
        self._processes.forget(process.command.mounts)

    def _exited(self, id: str, exit: Exit) -> None:
        is_out_of_memory = self._memory.ended(id)
        process = self._running.pop(id, None)
        if process is None:
            return
        for other in [*process.beside]:
            self.signal(other, signal.SIGKILL)
        if not process.ended.done():
            process.ended.set_result(Ended(exit.code, is_out_of_memory))

    def _measured(self, uses: dict[str, Use]) -> None:
        self.recent.add({**uses, MACHINE: self._machine.measure()}, time.monotonic())

    async def _open(self) -> None:
        self._processes = Processes(self._folder / "supervisor.log", self._exited)
        self._memory = MemoryLimits(self._processes, self._measured, use_cgroups=True)
        await self._processes.__aenter__()
        self.has_namespaces = self._processes.namespaces
        self._measuring = asyncio.create_task(self._memory.measure())

    async def _close(self) -> None:
        self._measuring.cancel()
        await asyncio.gather(self._measuring, return_exceptions=True)
        await self._processes.__aexit__()

    async def _renew(self) -> None:
        """A supervisor that was killed took its processes with it, and their ends were told; others can start."""
        async with self._starting:
            try:
                self._processes.check()
            except SupervisorLost:
                await self._close()
                await self._open()


class Ends(Struct, frozen=True):
    """Of pipes, or of a terminal: ours, and those that the process opens by their paths."""

    stdin: int | None
    stdout: int
    stderr: int | None
    theirs: tuple[int, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        own = f"/proc/{os.getpid()}/fd"
        return tuple(f"{own}/{each}" if each >= 0 else os.devnull for each in self.theirs)

    def close_theirs(self) -> None:
        for each in {*self.theirs} - {-1}:
            os.close(each)

    def close_ours(self) -> None:
        for each in {self.stdin, self.stdout, self.stderr} - {None}:
            os.close(each)  # type: ignore[arg-type]


def _pipes(stdin: bool) -> Ends:
    reads, ours = os.pipe() if stdin else (-1, None)
    (stdout, out), (stderr, err) = os.pipe(), os.pipe()
    return Ends(ours, stdout, stderr, (reads, out, err))


def _terminal() -> Ends:
    master, slave = pty.openpty()
    return Ends(os.dup(master), master, None, (slave, slave, slave))


class AttachedProcess:
    """See runtime.Attached."""

    def __init__(self, engine: Engine, process: Process, ends: Ends) -> None:
        self.stdin, self.stdout, self.stderr = ends.stdin, ends.stdout, ends.stderr
        self._engine, self.process = engine, process

    async def wait(self) -> int:
        return (await asyncio.shield(self.process.ended)).code

    def resize(self, width: int, height: int) -> None:
        if self.stderr is None:
            fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def kill(self) -> None:
        self._engine.signal(self.process, signal.SIGKILL)
