"""A run at the terminal: shows its events, stops it by Ctrl-C, and prints how it ended."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shlex import quote

import click

from tfyard.cli.screen.base import Screen
from tfyard.cli.screen.summary import summary
from tfyard.local.evidence import why
from tfyard.local.prepared import Prepared
from tfyard.local.run import Run
from tfyard.local.shortfalls import outputs
from tfyard.model.run_events import Metric, Note, RunEvent
from tfyard.overview.progress import Progress, total_steps
from tfyard.overview.record import RunRecord

REFRESH_EVERY = 0.15


class Follower:
    def __init__(self, prepared: Prepared, output: str, *, quiet: bool, verbose: bool) -> None:
        self._prepared, self._output, self._quiet = prepared, output, quiet
        self._progress = Progress(total_steps(prepared.job))
        tasks = [task.name for task in prepared.job.tasks()]
        self._screen = _choose(output, tasks, self._progress, quiet=quiet, verbose=verbose)

    async def follow(self) -> RunRecord:
        run = Run(self._prepared, self._show, for_screen=self._screen.may_skip)
        with _on_terminal(self._screen):
            self._handle_signals(run)
            refreshing = asyncio.create_task(self._refresh())
            record = await run.execute()
            refreshing.cancel()
        if self._output != "json":
            with suppress(OSError):
                self._print_end(run, record)
        return record

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_EVERY)
            with suppress(OSError):
                self._screen.refresh()

    def _show(self, event: RunEvent) -> None:
        if isinstance(event, Metric):
            self._progress.note(event, time.monotonic())
        with suppress(OSError):  # the terminal is gone, or `head` has read enough: the run itself continues
            self._screen.show(event)

    def _handle_signals(self, run: Run) -> None:
        def interrupt() -> None:
            text = "stopping at once" if run.interrupts else "stopping; press Ctrl-C again to stop at once"
            self._show(Note("warning", text))
            run.interrupt()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup
                asyncio.get_running_loop().add_signal_handler(number, interrupt)

    def _print_end(self, run: Run, record: RunRecord) -> None:
        click.echo()
        for line in summary(record, self._progress, why(run.directory, record)):
            click.echo(line)
        click.echo()
        if run.directory.work.exists():
            click.echo(f"files:   {run.directory.work}")
        for name, path in outputs(self._prepared.job, self._prepared.mounts):
            click.echo(f"{name + ':':<8} {path}")
        click.echo(f"logs:    {run.directory.path}/logs")
        target = self._prepared.settings.target
        if record.phase == "Succeeded" and not self._quiet and target.endswith((".yaml", ".yml", ".json")):
            click.echo(f"on a cluster: tfyard submit {quote(target)} --follow")


def _choose(output: str, tasks: list[str], progress: Progress, *, quiet: bool, verbose: bool) -> Screen:
    """Imports only the chosen one: rich is not needed to print lines."""
    if output == "json":
        from .lines import JsonScreen

        return JsonScreen(quiet=quiet)
    is_dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if sys.stdout.isatty() and not is_dumb and not quiet:
        from .live import LiveScreen

        return LiveScreen(tasks, progress, verbose=verbose)
    from .lines import PlainScreen

    return PlainScreen(tasks, quiet=quiet, verbose=verbose)


@contextmanager
def _on_terminal(screen: Screen) -> Iterator[None]:
    """A terminal that is gone at the end is no reason to fail."""
    screen.__enter__()
    try:
        yield
    finally:
        with suppress(OSError):
            screen.__exit__()
