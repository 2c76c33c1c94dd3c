"""The process that runs one job for a Python program, as `tfyard run` does for a terminal, or drives a sweep.

It is a separate process because a run has an event loop, child processes and a working directory, which must not
be those of the program. Its standard input has an order in the first line, then the job file if that is in no
file. Its standard output has messages: that the run has started, or why not, and warnings. It ends the run when
the program ends, in whatever way.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.local import actions
from tfyard.local.prepare import prepare
from tfyard.local.prepared import PreparedRun
from tfyard.local.run import Execution
from tfyard.model.run_events import Note, RunEvent
from tfyard.sdk.messages import (
    Began,
    Message,
    Question,
    Rerun,
    Resume,
    ResumeSweep,
    RunOrder,
    RunRefused,
    StartRun,
    StartSweep,
    SweepOrder,
    UserMessage,
)

if TYPE_CHECKING:
    from tfyard.model.sweep import SweepState
    from tfyard.sdk.sweep_on_machine import DriveOnMachine

LOOK_EVERY = 0.5
"""Seconds between two checks whether the program still runs."""
INTERRUPTED = 130


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Question)
    try:
        if isinstance(order.what, StartSweep | ResumeSweep):
            return _drive(order.what, order.program)
        prepared = _prepared(order.what)
        _tell_about(prepared)
        if os.getppid() != order.program:  # it has ended meanwhile, and nobody would know of the run
            return 1
        return asyncio.run(_ChildRun(prepared, order.program).run())
    except Invalid as error:
        plain = tuple(
            replace(problem, value=UNSET) for problem in error.problems
        )  # values may not be serializable
        _send(RunRefused(str(error), problems=plain, name=error.name))
    except TfyardError as error:
        _send(RunRefused(str(error), is_usage=isinstance(error, Usage)))
    except OSError as error:
        _send(RunRefused(f"{error.filename or 'the run directory'}: {error.strerror}"))
    return 1


def _prepared(order: RunOrder) -> PreparedRun:
    match order:
        case StartRun(settings):
            return prepare(settings)
        case Resume(directory):
            return actions.resume(RunDirectory(Path(directory)))
        case Rerun(directory, sets, env, name, is_exact):
            return actions.rerun(RunDirectory(Path(directory)), sets, env, name, is_exact=is_exact)


def _tell_about(prepared: PreparedRun) -> None:
    for problem in prepared.warnings:
        _send(UserMessage("warning", str(Invalid([problem], (), prepared.file.name))))
    for text in prepared.changes:
        _send(UserMessage("info", f"changed: {text}"))


def _send(message: Message) -> None:
    with suppress(OSError):  # the program has ended
        os.write(1, msgspec.json.encode(message) + b"\n")


class _ChildRun:
    def __init__(self, prepared: PreparedRun, program: int) -> None:
        self._program, self._has_begun = program, False
        self._run = Execution(prepared, self._show)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                loop.add_signal_handler(number, self._run.interrupt)
        watching = asyncio.create_task(self._end_with_program())
        try:
            record = await self._run.execute()
        finally:
            watching.cancel()
        return record.exit_code or 0

    async def _end_with_program(self) -> None:
        """Stop the run when the program has ended: this process then has another parent."""
        while os.getppid() == self._program:
            await asyncio.sleep(LOOK_EVERY)
        self._run.interrupt()

    def _show(self, event: RunEvent) -> None:
        if isinstance(event, Note):
            _send(UserMessage(event.level, event.text))
        elif not self._has_begun:  # after its first notes, the run has a record and accepts orders
            self._has_begun = True
            _send(Began(str(self._run.directory.path.resolve())))


# --- a sweep


def _drive(order: SweepOrder, program: int) -> int:
    """Drives the sweep to its end, or until the program has ended; then it can be resumed."""
    logging.getLogger("tfyard").addHandler(logging.NullHandler())  # what trials say is in their own records
    driven = _driven(order)
    for note in driven.notes:
        _send(UserMessage("info", note))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, _interrupt)
    threading.Thread(target=_interrupt_after, args=(program,), daemon=True).start()
    has_begun = threading.Event()

    def watch(_: "SweepState") -> None:
        """Reports the start of the sweep at its first change: from here on, its folder says that it is driven."""
        if not has_begun.is_set():
            has_begun.set()
            _send(Began(driven.where))

    try:
        state = driven.run(watch)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0 if state.best is not None else 1


def _driven(order: SweepOrder) -> "DriveOnMachine":
    from tfyard.local.sweeps import SweepFolder  # 30 ms with the next, which a run does not need
    from tfyard.sdk.sweep_on_machine import continued, new

    if isinstance(order, StartSweep):
        return new(order.spec, order.settings, datetime.now(UTC))
    return continued(SweepFolder(Path(order.directory)))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _interrupt_after(program: int) -> None:
    """Interrupts the sweep when the program has ended: this process then has another parent."""
    while os.getppid() == program:
        time.sleep(LOOK_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)
