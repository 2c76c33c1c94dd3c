"""Starts runs on this machine in separate processes, which end with this program; and commands in their tasks.

The process has its own session: Ctrl-C in a terminal or a notebook interrupts the program, not the run.
"""

import asyncio
import atexit
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.node.launch import PACKAGES
from tfyard.sdk.merging import merged
from tfyard.sdk.messages import MESSAGES, Began, Question, RunOrder, RunRefused, SweepOrder, UserMessage
from tfyard.sdk.place import CommandEnded, CommandOutput

LOG = logging.getLogger("tfyard")
PROGRAM = f"""import sys; sys.path.append({PACKAGES!r})
from tfyard.sdk.child import main; sys.exit(main())"""

CHUNK = 1 << 16
EXECUTE = f"""import sys; sys.path.append({PACKAGES!r})
from pathlib import Path
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import tasks
run, task, *argv = sys.argv[1:]
sys.exit(tasks.exec(RunDirectory(Path(run)).load(), task, argv))"""

_running: dict[subprocess.Popen[bytes], int] = {}
"""Running processes -> the process ID that started them: a fork of this program must not stop them."""


def start(order: RunOrder | SweepOrder, text: str = "") -> RunDirectory:
    """Start a run, or the driver of a sweep, and wait until it has a record. `text`: the job file, if it is no
    file."""
    with tempfile.TemporaryFile() as errors:
        process = _spawn(errors)
        listener = threading.Thread(target=_listen, args=(process,), daemon=True)
        try:
            request = msgspec.json.encode(Question(order, os.getpid()))
            answer = _answer(process, request + b"\n" + text.encode())
        except BaseException:
            process.terminate()
            raise
        finally:
            listener.start()
        if isinstance(answer, Began):
            return RunDirectory(Path(answer.directory))
        listener.join()
        if answer is not None:
            raise _error(answer)
        errors.seek(0)
        raise TfyardError(f"the run could not be started:\n{errors.read().decode(errors='replace').strip()}")


def _spawn(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process. The order is not in its arguments, which every user of this machine can read."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],  # -P: no modules of the working directory
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    if not _running:
        atexit.unregister(stop_all)
        atexit.register(stop_all)
    _running[process] = os.getpid()
    return process


def _answer(process: subprocess.Popen[bytes], question: bytes) -> Began | RunRefused | None:
    """Send the order and read the answer; None if the process has ended without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError), process.stdin as stdin:  # it may have ended; its output says why
        stdin.write(question)
    for line in process.stdout:
        message = MESSAGES.decode(line)
        if not isinstance(message, UserMessage):
            return message
        _log(message)
    return None


def _error(refused: RunRefused) -> TfyardError:
    if refused.problems:
        return Invalid(refused.problems, (), refused.name)
    text = refused.message.removeprefix("--")  # an option of the terminal is an argument in Python
    return Usage(text) if refused.is_usage else TfyardError(text)


def _listen(process: subprocess.Popen[bytes]) -> None:
    """Log the messages of the process until it has ended."""
    assert process.stdout is not None
    with process.stdout as stdout:
        for message in map(MESSAGES.decode, stdout):
            if isinstance(message, UserMessage):
                _log(message)
    process.wait()
    _running.pop(process, None)


def _log(message: UserMessage) -> None:
    LOG.log(logging.WARNING if message.level == "warning" else logging.INFO, "%s", message.text)


async def in_tasks(
    run: RunDirectory, tasks: Sequence[str], argv: Sequence[str]
) -> AsyncIterator[CommandOutput | CommandEnded]:
    async for event in merged(*(_in_task(run, task, argv) for task in tasks)):
        yield event


async def _in_task(
    run: RunDirectory, task: str, argv: Sequence[str]
) -> AsyncIterator[CommandOutput | CommandEnded]:
    """Run a command in a task, by a new process: a program with threads cannot enter the namespaces of a task."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", EXECUTE, str(run.path), task, *argv),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stderr
    try:
        async for output in merged(_output(task, 1, process.stdout), _output(task, 2, process.stderr)):
            yield output
        yield CommandEnded(task, await process.wait())
    finally:
        if process.returncode is None:  # after Ctrl-C the command is killed, too
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _output(task: str, stream: int, reader: asyncio.StreamReader) -> AsyncIterator[CommandOutput]:
    while data := await reader.read(CHUNK):
        yield CommandOutput(task, stream, data)


def stop_all() -> None:
    """Stop all runs at the end of this program, as Ctrl-C does, and wait for their tasks' grace period."""
    for process in _own():
        process.terminate()
    wait_for_all()


def wait_for_all() -> None:
    """Wait until all runs have ended."""
    for process in _own():
        process.wait()


def _own() -> list[subprocess.Popen[bytes]]:
    return [process for process, owner in _running.items() if owner == os.getpid()]
