"""Asks another program a question that must not hold up a command: bounded in time and in bytes, without
a standard input, and ended together with all that it has started."""

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

LOOK_EVERY = 0.1
"""Seconds between two looks whether the answer is still wanted."""
CHUNK = 1 << 16


class ProgramAnswer(Struct, frozen=True):
    out: bytes
    problem: str = ""
    """Why the answer is missing or not whole."""


class QuestionLimits:
    """The time for all questions together; `stop` ends the one that is being asked."""

    def __init__(self, seconds: float) -> None:
        self._deadline, self._stopped = time.monotonic() + seconds, threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    @property
    def is_over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() >= self._deadline


def ask(
    command: Sequence[str], env: Mapping[str, str], folder: Path, limits: QuestionLimits, most: int
) -> ProgramAnswer:
    """What the command writes, at most `most` bytes of it."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        missing = isinstance(error, FileNotFoundError) and folder.is_dir()
        return ProgramAnswer(b"", f"{command[0]} is not installed" if missing else str(error))
    with process:
        try:
            return _read(process, limits, most)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], limits: QuestionLimits, most: int) -> ProgramAnswer:
    assert process.stdout
    assert process.stderr
    out, errors = bytearray(), bytearray()
    parts = {process.stdout.fileno(): out, process.stderr.fileno(): errors}
    poll = select.poll()
    for end in parts:
        poll.register(end, select.POLLIN)
    while parts and len(out) <= most:
        if limits.is_over:
            return ProgramAnswer(bytes(out), "it took too long")
        for end, _ in poll.poll(LOOK_EVERY * 1000):
            data = os.read(end, CHUNK)
            parts[end] += data[: max(0, most + 1 - len(parts[end]))]
            if not data:
                poll.unregister(end)
                del parts[end]
    if len(out) > most:
        return ProgramAnswer(bytes(out[:most]), "the answer is too long")
    with suppress(subprocess.TimeoutExpired):
        process.wait(LOOK_EVERY * 10)
    message = errors.decode(errors="replace").strip()
    return ProgramAnswer(
        bytes(out), "" if process.returncode == 0 else message or f"it ended with code {process.returncode}"
    )
