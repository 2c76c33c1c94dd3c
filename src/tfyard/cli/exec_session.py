"""A command in a container and this terminal: its streams, its size, its keys."""

import asyncio
import os
import signal
import stat
import sys
import termios
import tty as terminal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from tfyard.cli import target
from tfyard.cli.screen import colours
from tfyard.errors import TfyardError
from tfyard.kube import Access, Client, KubeError, pod_streams
from tfyard.kube.pod_streams import Command, Process
from tfyard.overview.objects import Pod
from tfyard.overview.wording import PROGRAM, TOOL
from tfyard.remote import tasks
from tfyard.remote.jobs import Found
from tfyard.remote.log_bytes import Splitter
from tfyard.remote.tasks import NotRunning, TaskContainer

CHUNK = 1 << 16
STDIN = 0


def running(found: Found, pods: dict[str, Pod], meant: Sequence[str], container: str) -> list[TaskContainer]:
    """Of those that are meant; the others are named on standard error."""
    containers = []
    for task in meant:
        try:
            containers.append(tasks.container_of(found, pods, task, container))
        except NotRunning as problem:
            target.say(str(problem))
    if not containers:
        raise TfyardError(f"none of the chosen tasks of {found.name} is running")
    return containers


# --- one task


async def in_one(
    access: Access, where: TaskContainer, argv: tuple[str, ...], *, stdin: bool, tty: bool
) -> int:
    stdin = stdin or _is_piped()
    if tty and not os.isatty(STDIN):
        target.say("standard input is not a terminal, so the command gets none")
        tty = False
    command = Command(
        namespace=where.namespace,
        pod=where.pod,
        container=where.container,
        argv=argv,
        stdin=stdin or tty,
        tty=tty,
    )
    async with Client(access) as client, pod_streams.start(client, command) as process:
        with _raw_terminal(process) if tty else _plain():
            sending = asyncio.create_task(_send_input(process)) if command.stdin else None
            try:
                await _print(process)
                return await process.wait()
            finally:
                if sending:
                    sending.cancel()
                    await asyncio.wait([sending])


async def _print(process: Process) -> None:
    streams = {1: sys.stdout.buffer, 2: sys.stderr.buffer}
    async for channel, data in process.output():
        streams[channel].write(data)
        streams[channel].flush()


async def _send_input(process: Process) -> None:
    """To its end. What breaks the connection is told where the output is read."""
    try:
        while data := await _read_input():
            await process.write(data)
        await process.close_stdin()
    except KubeError:
        return


async def _read_input() -> bytes:
    """The descriptor stays blocking: it belongs to the shell, too. Regular files are always ready."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(STDIN, ready.set)
    except PermissionError:
        return os.read(STDIN, CHUNK)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(STDIN)
    return os.read(STDIN, CHUNK)


def _is_piped() -> bool:
    """From a pipe or a file; not /dev/null or a terminal."""
    try:
        mode = os.fstat(STDIN).st_mode
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _raw_terminal(process: Process) -> Iterator[None]:
    """Each key goes to the command, Ctrl-C too. The terminal is as before afterwards, however this ends."""
    loop, before, sending = asyncio.get_running_loop(), termios.tcgetattr(STDIN), set[asyncio.Task[None]]()

    def resize() -> None:
        size = os.get_terminal_size(STDIN)
        task = loop.create_task(_resize(process, size))
        sending.add(task)
        task.add_done_callback(sending.discard)

    terminal.setraw(STDIN)
    loop.add_signal_handler(signal.SIGWINCH, resize)
    try:
        resize()
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        termios.tcsetattr(STDIN, termios.TCSADRAIN, before)


async def _resize(process: Process, size: os.terminal_size) -> None:
    try:
        await process.resize(size.columns, size.lines)
    except KubeError:
        return  # told where the output is read


@contextmanager
def _plain() -> Iterator[None]:
    yield


# --- all tasks


async def in_all(
    access: Access, containers: Sequence[TaskContainer], argv: tuple[str, ...], names: Sequence[str]
) -> int:
    """The first exit code that is not 0, in the order of the tasks."""
    labels = _Labels(names)
    async with Client(access) as client:
        codes = await asyncio.gather(*(_in_each(client, where, argv, labels) for where in containers))
    return next((code for code in codes if code), 0)


class _Labels:
    """The task in front of each line, in its colour where the stream is a terminal."""

    def __init__(self, names: Sequence[str]) -> None:
        self._width, self._colours = max(map(len, names)), colours.of_tasks(names)

    def of(self, task: str, mark: str, stream: int) -> bytes:
        label = f"{task:<{self._width}} {mark} "
        is_coloured = os.isatty(stream) and not os.environ.get("NO_COLOR")
        return (click.style(label, fg=self._colours[task]) if is_coloured else label).encode()


async def _in_each(client: Client, where: TaskContainer, argv: tuple[str, ...], labels: _Labels) -> int:
    command = Command(namespace=where.namespace, pod=where.pod, container=where.container, argv=argv)
    lines = {1: Splitter(), 2: Splitter()}
    try:
        async with pod_streams.start(client, command) as process:
            async for stream, data in process.output():
                _write(stream, labels.of(where.task, PROGRAM, stream), lines[stream].feed(data))
            code = await process.wait()
    except KubeError as problem:
        _write(2, labels.of(where.task, TOOL, 2), [str(problem).encode()])
        code = 1
    for stream, splitter in lines.items():
        _write(stream, labels.of(where.task, PROGRAM, stream), splitter.close())
    if code:
        _write(2, labels.of(where.task, TOOL, 2), [b"exit code %d" % code])
    return code


def _write(stream: int, label: bytes, lines: Sequence[bytes]) -> None:
    file = sys.stdout.buffer if stream == 1 else sys.stderr.buffer
    file.write(b"".join(label + line + b"\n" for line in lines))
    file.flush()
