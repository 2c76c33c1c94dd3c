"""TensorBoard on this machine over the summaries of runs, also of those that have ended."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import TfyardError, Usage
from tfyard.local import options_file, views
from tfyard.local.copying import locate
from tfyard.local.tensorboard import has_tensorboard
from tfyard.model import tensorflow_container
from tfyard.model.run_record import RunRecord
from tfyard.node import interpreter
from tfyard.node.orphans import die_with

HOST = "127.0.0.1"
EVENTS = "*tfevents*"
"""Names of summary files."""
CHUNK, LAST_WORDS = 1 << 16, 2000
RETRY, GRACE = 0.2, 5.0


def folder(run: RunDirectory, record: RunRecord, log_dir: str = "") -> Path:
    """`log_dir`: on this machine, or as the tasks see it; default: what `--tensorboard` gave, what the job says,
    else where summaries are."""
    log_dir = log_dir or options_file.log_dir(run)
    if log_dir and Path(log_dir).is_dir():
        return Path(log_dir).resolve()
    job = views.job_of(run)
    directory = log_dir or (job.tensorboard.log_dir if job and job.tensorboard else "")
    return locate(run, record, directory).resolve() if directory else _with_events(run, record)


def _with_events(run: RunDirectory, record: RunRecord) -> Path:
    candidates = [run.work]
    job = views.job_of(run)
    for role in job.roles if job else ():
        for mount in tensorflow_container(role.template).get("volumeMounts") or []:
            with suppress(Usage):  # the mount is not kept
                candidates.append(locate(run, record, str(mount.get("mountPath"))))
    first = next((each for each in candidates if next(each.rglob(EVENTS), None)), None)
    if first is None:
        looked = ", ".join(dict.fromkeys(map(str, candidates)))
        raise TfyardError(f"{run.name} has no summaries in {looked}; --logdir DIR says where they are")
    return first.resolve()


@asynccontextmanager
async def board(folders: Mapping[str, Path]) -> AsyncIterator["Board"]:
    """TensorBoard over these folders, each under its name in the page."""
    port, python = _free_port(), _python()
    only = next(iter(folders.values()))
    spec = ",".join(f"{name}:{path}" for name, path in folders.items())
    where = ["--logdir", str(only)] if len(folders) == 1 else ["--logdir_spec", spec]
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", "tensorboard.main", *where, "--host", HOST, "--port", str(port)),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        preexec_fn=partial(die_with, os.getpid()),
    )
    try:
        yield Board(process, port)
    finally:
        await _end(process)


class Board:
    name = "TensorBoard"

    def __init__(self, process: Process, port: int) -> None:
        self._process, self._port = process, port

    async def over(self) -> str:
        """Exit code and last output of TensorBoard, once it has ended."""
        assert self._process.stdout
        output = b""
        while data := await self._process.stdout.read(CHUNK):
            output = (output + data)[-LAST_WORDS:]
        return f"exit code {await self._process.wait()}: {output.decode(errors='replace').strip()}"

    async def connect(
        self,
        stack: AsyncExitStack,
        port: int,  # noqa: ARG002
        tell: Callable[[str], None],  # noqa: ARG002
    ) -> "LocalConnection":
        """Tries again while TensorBoard starts, which takes seconds."""
        while True:
            try:
                reader, writer = await asyncio.open_connection(HOST, self._port)
            except OSError:
                if self._process.returncode is not None:
                    raise
                await asyncio.sleep(RETRY)
            else:
                stack.callback(writer.close)
                return LocalConnection(reader, writer)


class LocalConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def data(self) -> AsyncIterator[bytes]:
        while data := await self._reader.read(CHUNK):
            yield data


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(GRACE):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _python() -> str:
    """Interpreter that has TensorBoard: that of tasks, else tfyard's."""
    chosen = interpreter.find(None, os.environ).path
    for path in dict.fromkeys((chosen, sys.executable)):
        if has_tensorboard(path):
            return path
    raise Usage(f"TensorBoard is not installed here; {chosen} -m pip install tensorboard")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
