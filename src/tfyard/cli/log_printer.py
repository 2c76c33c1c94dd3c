"""Log lines at the terminal, in a pipe, or as JSON, for `tfyard logs` and `tfyard submit --follow`.

Lines of programs go to standard output, messages of tfyard to standard error; in JSON, both are objects on
standard output.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard.cli import target
from tfyard.cli.screen import colours
from tfyard.cli.screen.rows import columns, wrapped
from tfyard.errors import Usage
from tfyard.logs.lines import Grep, Lines, LogEvent, LogSelection, Remark, Start, clock, relative
from tfyard.logs.runtime_notices import Fold
from tfyard.logs.terminal_text import (
    SCREEN_LINE,
    clean_lines,
    plain_lines,
    with_reset_colours,
    without_colours,
)
from tfyard.overview.waiting import WaitResult
from tfyard.overview.wording import PROGRAM, TOOL, folded
from tfyard.sdk.lines import ALL, LineChoice
from tfyard.sdk.place import Place

Note = Callable[[LogEvent | WaitResult | None], None]

FLUSH_EVERY = 0.1
LINES_PER_FLUSH = 200
"""Maximum number of lines that a terminal is shown at once; the others are counted."""
TELL_SKIPPED_EVERY = 1.0


class PrinterOptions(Struct, frozen=True):
    """The options of the command."""

    words: tuple[str, ...] = ()
    follow: bool = False
    tail: int = -1
    since: str = ""
    timestamps: str = ""
    grep: str = ""
    attempt: str = ""
    all_attempts: bool = False
    prefix: bool = True
    output: str = "text"
    folds: bool = False
    """Hide the notices of TensorFlow's runtime on a terminal."""


def print_logs(place: Place, options: PrinterOptions, note: Note | None = None) -> int:
    """Print the logs of a job. The result is an exit code: that of the job, if it is followed to its end. `note`
    is called with all that is followed."""
    tasks, job = place.tasks(), place.summary()
    choice = LineChoice(
        task=options.words,
        tail=options.tail if options.tail >= 0 else None,
        since=options.since,
        attempt=ALL if options.all_attempts else options.attempt,
    )
    wanted = replace(choice.wanted(tasks), times=bool(options.timestamps))
    shown = printer(tasks, wanted, options, job.status.start_time or job.created)
    if options.follow:
        import asyncio  # 20 ms, which logs that are printed once do not need

        return asyncio.run(_follow(place, wanted, shown, note or (lambda _: None)))
    for event in place.logs(wanted):
        shown.show(event)
    shown.close()
    return 0


async def _follow(place: Place, wanted: LogSelection, shown: Printer, note: Note) -> int:
    async for event in place.follow(wanted):
        note(event)
        if event is None:
            shown.flush()
        elif isinstance(event, WaitResult):
            shown.close()
            if event.text:
                target.say(event.text)
            return event.code
        else:
            shown.show(event)
    return 0


def printer(
    tasks: list[str], wanted: LogSelection, options: PrinterOptions, began: datetime | None
) -> Printer:
    is_terminal = sys.stdout.isatty()
    look = LineStyle(
        prefix=options.prefix and (len(wanted.tasks) > 1 or wanted.all_attempts),
        times=options.timestamps,
        began=began,
        is_json=options.output == "json",
        is_coloured=is_terminal and not os.environ.get("NO_COLOR"),
        may_skip=is_terminal and options.follow,
        folds=is_terminal and options.folds,
        pattern=_pattern(options.grep),
    )
    return Printer(tasks, look)


def _pattern(text: str) -> re.Pattern[bytes] | None:
    try:
        return re.compile(text.encode()) if text else None
    except re.error as problem:
        raise Usage(f"--grep {text}: {problem}") from None


# --- printing


class LineStyle(Struct, frozen=True, kw_only=True):
    prefix: bool = True
    times: str = ""
    """utc, or relative: since `began`."""
    began: datetime | None = None
    is_json: bool = False
    is_coloured: bool = False
    may_skip: bool = False
    folds: bool = False
    """Hide the notices of TensorFlow's runtime, as `tfyard run` does."""
    pattern: re.Pattern[bytes] | None = None


class Printer:
    def __init__(self, tasks: Sequence[str], look: LineStyle) -> None:
        self._look, self._width = look, max(map(len, tasks), default=0)
        self._colours = colours.of_tasks(tasks) if look.is_coloured else {}
        self._greps: dict[Start, Grep] = {}
        self._skipped: Counter[Start] = Counter()
        self._fold = Fold(active=look.folds)
        self._shown, self._flushed, self._told = 0, 0.0, 0.0
        self._encoder = msgspec.json.Encoder()

    def show(self, event: LogEvent) -> None:
        if isinstance(event, Remark):
            self._close_grep(event)
            self._tell_folded(event)
            self._say(event)
        else:
            self._print(self._within_limits(self._matching(self._unfolded(event))))
        if time.monotonic() - self._flushed > FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        self._shown, self._flushed = 0, time.monotonic()
        if self._skipped and self._flushed - self._told > TELL_SKIPPED_EVERY:
            self._tell_skipped()
        sys.stdout.flush()

    def close(self) -> None:
        for start, grep in self._greps.items():
            self._print(_lines(start, grep.close()))
        self._tell_skipped()
        sys.stdout.flush()

    def _unfolded(self, lines: Lines) -> Lines:
        if not self._look.folds:
            return lines
        shown = [self._fold.shown(lines.start.task, text.decode(errors="replace")) for text in lines.texts]
        kept = [at for at, texts in enumerate(shown) if texts]
        stamps = [lines.stamps[at] for at in kept] if lines.stamps else ()
        return Lines(lines.start, [shown[at][0].encode() for at in kept], stamps)

    def _tell_folded(self, message: Remark) -> None:
        if message.start and message.kind == "ended" and (count := self._fold.report(message.start.task)):
            self._say(Remark(kind="folded", text=folded(count), start=message.start))

    def _matching(self, lines: Lines) -> Lines:
        if self._look.pattern is None:
            return lines
        grep = self._greps.setdefault(lines.start, Grep(self._look.pattern))
        return _lines(lines.start, grep.take(lines.texts, lines.stamps))

    def _close_grep(self, message: Remark) -> None:
        """Print the last lines of a program that has ended."""
        if message.start and message.kind == "ended" and (grep := self._greps.pop(message.start, None)):
            self._print(_lines(message.start, grep.close()))

    def _within_limits(self, lines: Lines) -> Lines:
        """The newest lines of a flood, so that the screen shows what happens now."""
        if not self._look.may_skip:
            return lines
        room = max(0, LINES_PER_FLUSH - self._shown)
        over = max(0, len(lines.texts) - room)
        self._shown += len(lines.texts) - over
        if over:
            self._skipped[lines.start] += over
        return Lines(lines.start, lines.texts[over:], lines.stamps[over:]) if over else lines

    def _tell_skipped(self) -> None:
        self._told = time.monotonic()
        for start, count in self._skipped.items():
            text = (
                f"… {count:,} lines skipped: more than a screen can show; a file or a pipe gets all of them"
            )
            self._say(Remark(kind="skipped", text=text, start=start))
        self._skipped.clear()

    # --- writing

    def _print(self, lines: Lines) -> None:
        if not lines.texts:
            return
        if self._look.is_json:
            sys.stdout.buffer.write(self._encoder.encode_lines(_objects(lines)))
            return
        text = clean_lines(b"\n".join(lines.texts))
        text = with_reset_colours(text) if self._look.is_coloured else without_colours(text)
        if self._look.times and lines.stamps:
            rows = zip(map(self._time, lines.stamps), text.split("\n"), strict=True)
            text = "\n".join(f"{at} {row}" for at, row in rows)
        sys.stdout.buffer.write(self._labelled(lines.start, text).encode("utf-8", "replace"))

    def _labelled(self, start: Start, text: str) -> str:
        """The text with its task before each line, and on a terminal before each row of a long line."""
        if not self._look.prefix:
            return f"{text}\n"
        label, width = self._name(start, PROGRAM), columns()
        if width is not None:
            room = width - max(self._width, len(start.name)) - len(f" {PROGRAM} ")
            text = "\n".join(row for line in text.split("\n") for row in _rows(line, room))
        return f"{label}{text.replace(chr(10), chr(10) + label)}\n"

    def _say(self, message: Remark) -> None:
        if self._look.is_json:
            row = {"event": message.kind, **_names(message.start), "message": message.text}
            sys.stdout.buffer.write(self._encoder.encode(row) + b"\n")
            return
        sys.stdout.flush()
        label = self._name(message.start, TOOL) if message.start else "tfyard: "
        first, *others = plain_lines(message.text.encode(), SCREEN_LINE)
        click.echo("\n".join([label + first, *(f"    {line}" for line in others)]), err=True)

    def _name(self, start: Start, mark: str) -> str:
        label = f"{start.name:<{self._width}} {mark} "
        return click.style(label, fg=self._colours[start.task]) if start.task in self._colours else label

    def _time(self, stamp: bytes) -> str:
        if self._look.times == "relative" and self._look.began:
            return relative(stamp, self._look.began)
        return clock(stamp)


def _lines(start: Start, matches: Sequence[tuple[bytes, bytes]]) -> Lines:
    stamps = [stamp for _, stamp in matches if stamp]
    return Lines(start, [text for text, _ in matches], stamps)


def _objects(lines: Lines) -> list[dict[str, object]]:
    names = _names(lines.start)
    return [
        {"time": stamp, **names, "text": text} if stamp else {**names, "text": text}
        for stamp, text in lines.rows()
    ]


def _rows(line: str, room: int) -> list[str]:
    """The rows of a line. A line that is too long loses its colours: they would count as columns."""
    return [line] if len(line) <= room and line.isascii() else wrapped(without_colours(line), room)


def _names(start: Start | None) -> dict[str, object]:
    if start is None:
        return {}
    names = {"task": start.task, "attempt": start.attempt, "restart": start.restart}
    return {**names, "container": start.container} if start.container else names
