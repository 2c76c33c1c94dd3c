"""The processes of containers, of their probes and hooks, and of `kubectl exec`, over one supervisor."""

import asyncio
import fcntl
import itertools
import os
import signal
import struct
import termios
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from .logs import tail
from .memory import MemoryLimits, Use
from .processes import ContainerCommand, Exit, Processes, SupervisorLost


class ContainerProcess:
    """A process that was started. `ended` is done when it has ended."""

    def __init__(self, id: str, command: ContainerCommand) -> None:
        self.id, self.command = id, command
        self.ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.beside: set[ContainerProcess] = set()
        """Processes that were started inside the same container; they end with this one."""


class Engine:
    """`async with` starts the supervisor; leaving ends every process, and removes the directory `scratch`.

    `renews`: a supervisor that is lost, with all its processes, is replaced by the next start. `on_measured` is
    called every second with the use of each process, by its id; `on_unfinished` with lines that a process has
    begun and not ended."""

    def __init__(
        self,
        folder: Path,
        on_measured: Callable[[dict[str, Use]], None] = lambda _uses: None,
        *,
        scratch: str = "",
        renews: bool = False,
        use_cgroups: bool = True,
        on_unfinished: Callable[[str, bytes], None] = lambda _id, _line: None,
    ) -> None:
        self._on_unfinished = on_unfinished
        self._folder, self._on_measured, self._scratch = folder, on_measured, scratch
        self._renews, self._use_cgroups = renews, use_cgroups
        self._running: dict[str, ContainerProcess] = {}
        self._numbers = itertools.count(1)
        self._starting = asyncio.Lock()
        self.has_namespaces = False
        """Whether containers can have views of the disk; true also while a lost supervisor is replaced."""

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def start(
        self, id: str, command: ContainerCommand, log: Path, limit: float | None = None
    ) -> ContainerProcess:
        """Start a process, with a limit of memory in bytes."""
        await self._renew()
        process = self._running[id] = ContainerProcess(id, self._memory.limit(id, command, limit))
        self._processes.start(id, process.command, log)
        return process

    async def started(self, process: ContainerProcess) -> bool:
        """Wait until its program runs; false if it could not be started."""
        await self._processes.started(process.id)
        return not (process.ended.done() and process.ended.result().problem)

    def pid(self, process: ContainerProcess) -> int | None:
        """Process ID, while it runs."""
        return self._processes.pids.get(process.id)

    def pids(self) -> dict[str, int]:
        """Id -> process ID of each process that runs."""
        return {**self._processes.pids}

    def signal_all(self, number: signal.Signals) -> None:
        for process in [*self._running.values()]:
            self.signal(process, number)

    def signal(self, process: ContainerProcess, number: signal.Signals) -> None:
        if not process.ended.done():
            self._processes.signal(process.id, number)

    async def run_beside(self, process: ContainerProcess, argv: list[str]) -> tuple[int, str]:
        """Run a command inside a container: its exit code and the end of its output. It is killed if this call is
        cancelled."""
        log = self._folder / f"beside-{next(self._numbers)}.log"
        command = replace(process.command, argv=argv, stdio=(), tty=False, stdin=False)
        started = await self.start_beside(process, command, log)
        try:
            ended = await asyncio.shield(started.ended)
            return ended.code, tail(log)
        finally:
            self.signal(started, signal.SIGKILL)
            log.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise SupervisorLost if no process can be started any more."""
        self._processes.check()

    async def exec(
        self, process: ContainerProcess, argv: list[str], *, stdin: bool, tty: bool
    ) -> "StreamedProcess":
        """Run a command inside a container, with descriptors for its client."""
        start = partial(self.start_beside, process, log=Path(os.devnull))
        return await self._start_streamed(
            replace(process.command, argv=argv), start, _terminal() if tty else _pipes(stdin)
        )

    async def start_interactive(
        self, id: str, command: ContainerCommand, limit: float | None, *, tty: bool
    ) -> "StreamedProcess":
        """Start a process, with descriptors in place of a log."""
        start = partial(self.start, id, log=Path(os.devnull), limit=limit)
        return await self._start_streamed(command, start, _terminal() if tty else _pipes(stdin=True))

    async def _start_streamed(
        self, command: ContainerCommand, start: Callable[..., Awaitable[ContainerProcess]], ends: "StreamPair"
    ) -> "StreamedProcess":
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
        return StreamedProcess(self, started, ends)

    async def start_beside(
        self, process: ContainerProcess, command: ContainerCommand, log: Path
    ) -> ContainerProcess:
        id = f"{process.id}/{next(self._numbers)}"
        started = await self.start(id, replace(command, beside=process.id), log)
        process.beside.add(started)
        started.ended.add_done_callback(lambda _: process.beside.discard(started))
        if process.ended.done():
            self.signal(started, signal.SIGKILL)
        return started

    def forget(self, process: ContainerProcess) -> None:
        """Free what the supervisor keeps for a container in which no other process will be started."""
        self._processes.forget(process.command)

    def _exited(self, id: str, exit: Exit) -> None:
        is_out_of_memory = self._memory.ended(id)
        process = self._running.pop(id, None)
        if process is None:
            return
        for other in [*process.beside]:
            self.signal(other, signal.SIGKILL)
        if not process.ended.done():
            process.ended.set_result(replace(exit, is_out_of_memory=is_out_of_memory))

    async def _open(self) -> None:
        log = self._folder / "supervisor.log"
        self._processes = Processes(log, self._exited, self._scratch, self._on_unfinished)
        self._memory = MemoryLimits(self._processes, self._on_measured, use_cgroups=self._use_cgroups)
        await self._processes.__aenter__()
        self.has_namespaces = self._processes.namespaces
        self._measuring = asyncio.create_task(self._memory.measure())

    async def _close(self) -> None:
        self._measuring.cancel()
        await asyncio.gather(self._measuring, return_exceptions=True)
        await self._processes.__aexit__()

    async def _renew(self) -> None:
        """Replace a supervisor that was killed; its processes ended with it, and their ends were reported."""
        async with self._starting:
            try:
                self._processes.check()
            except SupervisorLost:
                if not self._renews:
                    raise
                await self._close()
                await self._open()


class StreamPair(Struct, frozen=True):
    """Ends of pipes or of a terminal: ours, and those that the process opens by their paths."""

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


def _pipes(stdin: bool) -> StreamPair:
    reads, ours = os.pipe() if stdin else (-1, None)
    (stdout, out), (stderr, err) = os.pipe(), os.pipe()
    return StreamPair(ours, stdout, stderr, (reads, out, err))


def _terminal() -> StreamPair:
    master, slave = os.openpty()
    return StreamPair(os.dup(master), master, None, (slave, slave, slave))


class StreamedProcess:
    """A process with descriptors for its client, which owns them. With a terminal, `stdin` and `stdout` are its
    master and `stderr` is None."""

    def __init__(self, engine: Engine, process: ContainerProcess, ends: StreamPair) -> None:
        self.stdin, self.stdout, self.stderr = ends.stdin, ends.stdout, ends.stderr
        self._engine, self.process = engine, process

    async def wait(self) -> int:
        return (await asyncio.shield(self.process.ended)).code

    def resize(self, width: int, height: int) -> None:
        if self.stderr is None:
            fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def kill(self) -> None:
        self._engine.signal(self.process, signal.SIGKILL)
