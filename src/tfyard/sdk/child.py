"""The process that runs one job for a Python program: what `tfyard run` is for a terminal.

A process of its own, because a run has an event loop, children and a working directory, and those of the program
are not ours to use. The first line of its standard input asks it; a job that is on no disk follows there. On its
standard output it says how it began and what a user should know. When the program has ended, however that was, it
ends the run.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.local import actions
from tfyard.local.prepare import prepare
from tfyard.local.prepared import Prepared
from tfyard.local.run import Run
from tfyard.model.run_events import Note, RunEvent
from tfyard.sdk.messages import Asked, Began, Message, Refused, Rerun, Resume, Start, Told

LOOK_EVERY = 0.5
"""Seconds between two looks whether the program is still there."""


def main() -> int:
    asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=Asked)
    try:
        prepared = _prepared(asked.what)
        _tell_about(prepared)
        return asyncio.run(_Serving(prepared, asked.program).run())
    except Invalid as error:
        plain = tuple(replace(each, value=UNSET) for each in error.problems)  # values may be anything
        _tell(Refused(str(error), problems=plain, name=error.name))
    except TfyardError as error:
        _tell(Refused(str(error), is_usage=isinstance(error, Usage)))
    except OSError as error:
        _tell(Refused(f"{error.filename or 'the run directory'}: {error.strerror}"))
    return 1


def _prepared(what: Start | Resume | Rerun) -> Prepared:
    match what:
        case Start(settings):
            return prepare(settings)
        case Resume(directory):
            return actions.resume(RunDirectory(Path(directory)))
        case Rerun(directory, sets, env, name):
            return actions.rerun(RunDirectory(Path(directory)), sets, env, name)


def _tell_about(prepared: Prepared) -> None:
    for problem in prepared.warnings:
        _tell(Told("warning", str(Invalid([problem], (), prepared.file.name))))
    for text in prepared.changes:
        _tell(Told("info", f"changed: {text}"))


def _tell(message: Message) -> None:
    with suppress(OSError):  # the program has gone
        os.write(1, msgspec.json.encode(message) + b"\n")


class _Serving:
    def __init__(self, prepared: Prepared, program: int) -> None:
        self._program, self._has_begun = program, False
        self._run = Run(prepared, self._show)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup
                loop.add_signal_handler(number, self._run.interrupt)
        watching = asyncio.create_task(self._end_with_program())
        try:
            record = await self._run.execute()
        finally:
            watching.cancel()
        return record.exit_code or 0

    async def _end_with_program(self) -> None:
        """A process whose parent has ended gets another one."""
        while os.getppid() == self._program:
            await asyncio.sleep(LOOK_EVERY)
        self._run.interrupt()

    def _show(self, event: RunEvent) -> None:
        if isinstance(event, Note):
            _tell(Told(event.level, event.text))
        elif not self._has_begun:  # after its first notes, the run has a record and takes orders
            self._has_begun = True
            _tell(Began(str(self._run.directory.path.resolve())))
