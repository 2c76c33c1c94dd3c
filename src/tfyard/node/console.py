"""The terminal or the pipes of a process, for its clients."""

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .engine import StreamedProcess
from .output import LineBuffer

CHUNK = 1 << 15
IDLE = 0.1
"""Seconds without output after which the output of an ended process is complete: its children may keep it open
for ever, and a terminal passes it on a little later."""
MOST_WAITS = 20
"""How often IDLE is waited for at most, because children of an ended process may go on writing."""


class ContainerConsole:
    """Stdin of a running container, for clients that attach to it, and its output, which goes into its log.
    `is_once`: the container is for one client, and ends with it."""

    def __init__(self, process: StreamedProcess, log: Path, *, is_once: bool) -> None:
        self._process, self._log, self._is_once = process, log, is_once
        self.has_visitors = False
        """Whether a client is or was attached: the first one is shown all earlier output."""
        outputs = [each for each in (process.stdout, process.stderr) if each is not None]
        self._open = {*outputs} | ({process.stdin} if process.stdin is not None else set())
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        self._copied = 0
        self._copies = {asyncio.create_task(self._copy(each)) for each in outputs}

    async def write(self, data: bytes) -> None:
        stdin = self._process.stdin
        if stdin is not None and stdin in self._open:
            with suppress(BrokenPipeError):  # it reads no more, as `head` does
                await write_descriptor(stdin, data)

    def resize(self, width: int, height: int) -> None:
        self._process.resize(width, height)

    def close_stdin(self) -> None:
        """The end of a pipe is an end of file; a terminal has none."""
        stdin = self._process.stdin
        if self._is_once and self._process.stderr is not None and stdin is not None and stdin in self._open:
            self._open.remove(stdin)
            os.close(stdin)

    def leave(self) -> None:
        """End a container that was for the client that has gone."""
        if self._is_once:
            self._process.kill()

    async def close(self) -> None:
        """Called after the end of the process; returns when its output is in the log."""
        unfinished, copied = self._copies, -1
        for _ in range(MOST_WAITS):
            if not unfinished or copied == self._copied:
                break
            copied = self._copied
            _, unfinished = await asyncio.wait(unfinished, timeout=IDLE)
        await cancel(*self._copies)
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    async def _copy(self, descriptor: int) -> None:
        """Copy whole lines, because two streams share the log; after IDLE seconds also the beginning of a line,
        which may be a question."""
        buffer, is_alone = LineBuffer(), self._process.stderr is None
        while True:
            try:
                async with asyncio.timeout(IDLE if buffer.rest else None):
                    data = await read_descriptor(descriptor)
            except TimeoutError:
                self._write(buffer.take())
                continue
            self._copied += len(data)
            self._write(data if is_alone else buffer.feed(data))
            if not data:
                self._write(buffer.take())
                return

    def _write(self, data: bytes) -> None:
        with suppress(OSError), self._log.open("ab") as log:  # a full disk must not end the process
            log.write(data)


async def read_descriptor(descriptor: int) -> bytes:
    """The available bytes, at least one; b"" at the end, which is EIO for a terminal that no process has open."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(descriptor, CHUNK)
        except BlockingIOError:
            await _ready(descriptor, loop.add_reader, loop.remove_reader)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""


async def write_descriptor(descriptor: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await _ready(descriptor, loop.add_writer, loop.remove_writer)


async def _ready(descriptor: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
