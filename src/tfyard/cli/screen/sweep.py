"""A sweep while it runs: a line for each trial that starts or ends, and how far the whole is."""

import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import replace

from tfyard.cli.screen import processes
from tfyard.cli.screen.summary import plot
from tfyard.errors import Interrupted
from tfyard.formats.sweepfile import words
from tfyard.model.sweep import SweepState, trial_name, values_text
from tfyard.overview import sweep_answer, sweep_text
from tfyard.overview.wording import harmless
from tfyard.sweeps.search import importances

if TYPE_CHECKING:
    from tfyard.job_input.sweeps import GivenSweep
    from tfyard.local.settings import RunOptions
    from tfyard.sweeps.driver import Drive


AT_ONCE = 2
"""This interrupt kills the trials."""
CLEAR = "\r\x1b[2K"
"""Moves the cursor to the beginning of the line, and empties it."""


def drive(sweep: "GivenSweep", asked: "RunOptions", form: str, *, quiet: bool) -> int:
    """Run a new sweep in the foreground; the result is an exit code."""
    from tfyard.sdk.sweep_on_machine import new  # 100 ms, which a wrong file does not need

    driven = new(sweep.spec, _of_job(sweep, asked), datetime.now(UTC))
    for note in driven.notes if form != "json" and not quiet else ():
        click.echo(harmless(note))
    return follow(driven, form, quiet=quiet)


def rehearse(sweep: "GivenSweep", asked: "RunOptions", form: str) -> None:
    """Print what the sweep would do, with the processes of its first trial; start nothing."""
    from tfyard.sdk.sweep_on_machine import rehearsed  # 100 ms, which a wrong file does not need

    would = rehearsed(sweep.spec, _of_job(sweep, asked), datetime.now(UTC))
    name = trial_name(would.spec.name, 1)
    if form == "json":
        first = {"trial": name, "values": would.values, "processes": would.first}
        told = {"sweep": words(would.spec), "parallel": would.parallel, "notes": would.notes, "first": first}
        click.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    at_once = f"{min(would.parallel, would.spec.trials)} at a time"
    described = sweep_text.described(would.spec)
    for line in (f"{would.spec.name}: {described}, {at_once}", *would.notes):
        click.echo(harmless(line))
    click.echo(harmless(f"{name}, the first trial: {values_text(would.values)}"))
    processes.print_text(would.first)


def _of_job(sweep: "GivenSweep", asked: "RunOptions") -> "RunOptions":
    return asked if asked.module is not None else replace(asked, target=sweep.job)


def follow(driven: "Drive", form: str, *, quiet: bool) -> int:
    """Drive the sweep to its end. The exit code: 0 if a trial has succeeded."""
    logging.getLogger("tfyard").addHandler(logging.NullHandler())  # what trials say is in their own records
    printer = _SweepPrinter(driven.state, form, quiet=quiet)
    printer.begin(driven)
    try:
        with _stopped_by_signals(printer if driven.stops_trials else None):
            state = driven.run(printer.show)
    except KeyboardInterrupt:
        raise Interrupted(driven.left) from None
    printer.end(driven.name, state)
    return 0 if state.best is not None else 1


def described(name: str, state: SweepState) -> Iterator[str]:
    """What `describe` prints of a sweep."""
    curve = list(plot(sweep_text.best_so_far(state)))
    return sweep_text.lines(name, state, datetime.now(UTC), importances(state), curve)


class _SweepPrinter:
    def __init__(self, state: SweepState, form: str, *, quiet: bool) -> None:
        self._state, self._is_json, self._quiet = state, form == "json", quiet
        self._progress = ""
        self._is_live = form != "json" and not quiet and sys.stdout.isatty()
        self._clear = CLEAR if self._is_live else ""

    def begin(self, driven: "Drive") -> None:
        if not self._is_json and not self._quiet:
            spec = driven.state.spec
            at_once = f"{min(driven.parallel, spec.trials)} at a time"
            trials = sweep_text.trial_count(spec.trials)
            click.echo(f"{spec.name}: {trials}, {at_once}, {spec.objective}; {driven.where}")
            if driven.removed:
                click.echo(f"removed {', '.join(driven.removed)} (TFYARD_KEEP_RUNS says how many are kept)")

    def show(self, state: SweepState) -> None:
        before, self._state = self._state, state
        if self._quiet:
            return
        for text in sweep_text.changes(before, state):
            self._print(text, "change")
        progress = sweep_text.progress(state) if state.phase == "Running" else ""
        is_new, self._progress = progress != self._progress, progress
        if self._is_live:
            self._draw_progress()
        elif is_new and progress:
            self._print(progress, "progress")

    def stopping(self, *, at_once: bool) -> None:
        """Called by a signal handler, which must not use a buffer that may be in use."""
        text = (
            "stopping at once" if at_once else "stopping the trials; press Ctrl-C again to stop them at once"
        )
        os.write(2, f"{self._clear}tfyard: {text}\n".encode())

    def end(self, name: str, state: SweepState) -> None:
        if self._is_json:
            told = sweep_answer.described(name, "", state, importances(state))
            click.echo(msgspec.json.encode(told).decode())
            return
        for text in sweep_text.summary(state):
            click.echo(f"{self._clear}{harmless(text)}")

    def _print(self, text: str, kind: str) -> None:
        if self._is_json:
            click.echo(msgspec.json.encode({"event": kind, "text": text}).decode())
        else:
            click.echo(f"{self._clear}{harmless(text)}")
        sys.stdout.flush()

    def _draw_progress(self) -> None:
        """On a terminal, the progress stays in the last line, below what has happened."""
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"{self._clear}{harmless(self._progress)[:width]}", nl=False)
        sys.stdout.flush()


@contextmanager
def _stopped_by_signals(printer: _SweepPrinter | None) -> Iterator[None]:
    """SIGTERM and SIGHUP are as Ctrl-C: the first asks the trials to end, the second kills them, which `printer`
    says; None: they go on."""
    times = 0

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if times <= AT_ONCE:
            if printer is not None:
                printer.stopping(at_once=times == AT_ONCE)
            raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, interrupt) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
