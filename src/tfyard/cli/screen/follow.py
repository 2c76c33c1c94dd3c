"""Shows a run at the terminal: prints its events (live, as lines or as JSON) and its end; Ctrl-C stops it."""

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shlex import quote

import click
import msgspec

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.cli.screen.base import Screen, ScreenOptions
from tfyard.cli.screen.rows import columns, hanging, wrapped
from tfyard.cli.screen.summary import summary
from tfyard.errors import TfyardError
from tfyard.local.loop import no_input
from tfyard.local.prepared import PreparedRun
from tfyard.local.run import Execution
from tfyard.local.shortfalls import outputs
from tfyard.logs.readings import storable
from tfyard.logs.runtime_notices import Fold
from tfyard.logs.terminal_text import without_colours
from tfyard.model.run_events import (
    Counts,
    Ended,
    Log,
    Metric,
    Note,
    Phase,
    RunEvent,
    Skipped,
    Started,
    Unfinished,
)
from tfyard.model.run_record import RunRecord
from tfyard.node import standard_input
from tfyard.overview import lost_peers
from tfyard.overview.progress import Progress, total_steps
from tfyard.overview.wording import PROGRAM, TOOL, ending, folded, skipped, starting_again

REFRESH_EVERY = 0.15
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def follow(prepared: PreparedRun, output: str = "text", *, quiet: bool = False, verbose: bool = False) -> int:
    """Run a job and show it until it has ended; the result is its exit code."""
    follower = RunFollower(prepared, output, quiet=quiet, verbose=verbose)
    try:
        record = asyncio.run(follower.follow())
    except OSError as error:
        raise TfyardError(f"{error.filename or 'the run directory'}: {error.strerror}") from error
    if follower.lost:
        where = f"`tfyard runs logs {record.name}` prints it"
        click.echo(f"tfyard: {follower.lost.strerror}: output of the run was lost; {where}", err=True)
    return record.exit_code or int(follower.lost is not None)


class RunFollower:
    def __init__(self, prepared: PreparedRun, output: str, *, quiet: bool, verbose: bool) -> None:
        self._prepared, self._output, self._quiet = prepared, output, quiet
        self.lost: OSError | None = None
        """Why output could not be written; empty if it could, or if the reader closed the pipe on purpose."""
        self._progress = Progress(total_steps(prepared.job))
        look = ScreenOptions(
            tasks=tuple(task.name for task in prepared.job.tasks()),
            asks=bool(prepared.reader) and standard_input.is_typed(),
            quiet=quiet,
            verbose=verbose,
        )
        self._screen = _choose(output, look, self._progress)
        self._no_input, self._has_told_unread = no_input(prepared.job), False

    async def follow(self) -> RunRecord:
        run = Execution(self._prepared, self._show, for_screen=self._screen.may_skip)
        with standard_input.restored(), _on_terminal(self._screen):
            self._handle_signals(run)
            refreshing = asyncio.create_task(self._refresh())
            self._tell_unread()
            record = await run.execute()
            self._tell_unread()  # it may have come later
            refreshing.cancel()
        if self._output != "json":
            with self._writing():
                self._print_end(run, record)
        return record

    def _tell_unread(self) -> None:
        """Tell once that something was piped in that no task gets."""
        if not self._prepared.reader and not self._has_told_unread and standard_input.is_waiting():
            attached = "with --attach, a task has the input of the terminal that you start it in"
            self._show(Note("warning", self._no_input or f"standard input is not read: {attached}"))
            self._has_told_unread = True

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_EVERY)
            with self._writing():
                self._screen.refresh()

    def _show(self, event: RunEvent) -> None:
        if isinstance(event, Metric):
            self._progress.note(event, time.monotonic())
        elif isinstance(event, Note) and event.text == self._no_input:
            if self._has_told_unread:
                return
            self._has_told_unread = True
        with self._writing():
            self._screen.show(event)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """If the terminal is gone, or `head` has read enough, or the disk is full, the run itself continues."""
        try:
            yield
        except OSError as problem:
            if problem.errno in FULL:
                self.lost = problem

    def _handle_signals(self, run: Execution) -> None:
        def interrupt(number: int) -> None:
            text = "stopping at once" if run.interrupts else "stopping; press Ctrl-C again to stop at once"
            self._show(Note("warning", text))
            run.interrupt(by_keyboard=number == signal.SIGINT)

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                loop.add_signal_handler(number, interrupt, number)
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGTSTP, self._suspend, run)

    def _suspend(self, run: Execution) -> None:
        """Ctrl-Z: stop the tasks, which are in sessions of their own, then this process, until `fg` or `bg`."""
        run.pause()
        with suppress(OSError):
            self._screen.__exit__()
        os.kill(os.getpid(), signal.SIGSTOP)
        run.go_on()
        with suppress(OSError):
            self._screen.__enter__()

    def _print_end(self, run: Execution, record: RunRecord) -> None:
        click.echo()
        lost = [*lost_peers.sentences(run.directory.status().endings)]
        for line in summary(record, self._progress, _why(run.directory, record), lost):
            click.echo(line)
        click.echo()
        if run.directory.work.exists():
            click.echo(f"files:   {run.directory.work}")
        for name, path in outputs(self._prepared.job, self._prepared.mounts):
            click.echo(f"{name + ':':<8} {path}")
        click.echo(f"logs:    {run.directory.path}/logs")
        if run.directory.problem:
            click.echo(f"disk:    {run.directory.problem}; logs and record are incomplete")
        target = "" if self._prepared.settings.values else self._prepared.settings.target
        if record.phase == "Succeeded" and not self._quiet and target.endswith((".yaml", ".yml", ".json")):
            click.echo(f"on a cluster: tfyard submit {quote(target)} --follow")


def _why(directory: RunDirectory, record: RunRecord) -> list[str]:
    if not record.has_failure:
        return []
    from tfyard.local.evidence import why  # 20 ms, and most runs succeed

    return why(directory, record)


def _choose(output: str, look: ScreenOptions, progress: Progress) -> Screen:
    if output == "json":
        return JsonScreen(quiet=look.quiet)
    is_dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if sys.stdout.isatty() and not is_dumb and not look.quiet:
        from .live import LiveScreen  # 45 ms with rich, which printed lines do not need

        return LiveScreen(look, progress)
    return PlainScreen(look)


@contextmanager
def _on_terminal(screen: Screen) -> Iterator[None]:
    """Enter and leave the screen; a terminal that was closed meanwhile is no error."""
    screen.__enter__()
    try:
        yield
    finally:
        with suppress(OSError):
            screen.__exit__()


# --- lines


class PlainScreen(Screen):
    """Lines without colour, for pipes, CI logs and NO_COLOR: `worker-0 │ …`. On a terminal, long lines are wrapped
    below their task, and notices of the runtime are folded; a pipe gets everything."""

    def __init__(self, look: ScreenOptions) -> None:
        self._width, self._quiet = look.width, look.quiet
        is_terminal = columns() is not None
        self._fold = Fold(active=is_terminal and not look.verbose)
        self.may_skip = is_terminal or look.quiet
        self._asks, self._is_asking = look.asks and is_terminal, False

    def show(self, event: RunEvent) -> None:
        match event:
            case Note("error" | "warning" as level, text):
                self._say(f"{level}: {text}", always=True)
            case Log(task, text):
                self._print_log(task, without_colours(text))
            case Unfinished(task, text) if text and self._asks and not self._quiet:
                self._ask(task, without_colours(text))
            case Skipped(task, lines):
                self._say_of(task, skipped(lines))
            case Started(task, start, _) if start > 1:
                self._say_of(task, starting_again(start))
            case Ended(task):
                if count := self._fold.report(task):
                    self._say_of(task, folded(count))
                self._say_of(task, ending(event))
            case Phase("Restarting", _):
                pass  # the warning that comes with it says so, and why
            case Phase(phase, _):
                self._say(f"job {phase.lower()}")
            case Note(_, text):
                self._say(text)

    def _print_log(self, task: str, text: str) -> None:
        label = f"{task:<{self._width}} {PROGRAM} "
        width = columns()
        if self._quiet:
            return
        if width is None:
            _write_labelled(label.encode(), text.encode("utf-8", "replace"))
            return
        for line in self._fold.shown(task, text):
            self._print("\n".join(label + row for row in wrapped(line, width - len(label))))

    def _ask(self, task: str, text: str) -> None:
        """Show a line that has no end yet: it may be a question. The next line begins where it began."""
        sys.stdout.write(f"\r{task:<{self._width}} {PROGRAM} {text}")
        sys.stdout.flush()
        self._is_asking = True

    def _say_of(self, task: str, text: str) -> None:
        self._say(f"{task:<{self._width}} {TOOL} {text}")

    def _say(self, text: str, *, always: bool = False) -> None:
        self._print(hanging(text, columns()), always=always)

    def _print(self, text: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            sys.stdout.write(f"\r{text}\n" if self._is_asking else f"{text}\n")
            sys.stdout.flush()
            self._is_asking = False


def _write_labelled(label: bytes, text: bytes) -> None:
    """Write bytes: many times faster than text, because the label is not ASCII and most logs are."""
    sys.stdout.buffer.write(label + text.replace(b"\n", b"\n" + label) + b"\n")
    sys.stdout.buffer.flush()


class JsonScreen(Screen):
    """Prints each event as a line of JSON, for scripts."""

    def __init__(self, *, quiet: bool) -> None:
        self._counts: Counts | None = None
        self._encoder = msgspec.json.Encoder()
        self._quiet = self.may_skip = quiet

    def show(self, event: RunEvent) -> None:
        if isinstance(event, Unfinished) or (self._quiet and isinstance(event, Log | Skipped)):
            return
        if isinstance(event, Counts):
            if event == self._counts:
                return
            self._counts = event
        sys.stdout.buffer.write(self._encoder.encode_lines(_rows(event, round(time.time(), 3))))
        sys.stdout.buffer.flush()


def _rows(event: RunEvent, now: float) -> list[dict[str, object]]:
    row = {"time": now, **msgspec.to_builtins(event)}
    if isinstance(event, Log):
        return [{**row, "text": line} for line in event.text.split("\n")]
    if isinstance(event, Metric):
        row["values"] = storable(event.values)
    return [row]
