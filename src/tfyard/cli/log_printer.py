"""Log lines at the terminal, in a pipe, or as JSON, for `tfyard logs` and `tfyard submit --follow`.

Lines of programs go to standard output, what tfyard says about them to standard error; in JSON, both are objects
on standard output.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click
import msgspec
from msgspec import Struct

from tfyard.cli import target
from tfyard.cli.screen import colours
from tfyard.cli.screen.rows import columns, wrapped
from tfyard.errors import Usage
from tfyard.formats.loglines import without_colours
from tfyard.node.logs import LONGEST_LINE, SCREEN_LINE, clean_lines
from tfyard.overview.log_lines import (
    Grep,
    Lines,
    LogEvent,
    Said,
    Start,
    Wanted,
    attempt_of,
    chosen,
    clock,
    relative,
)
from tfyard.overview.runtime_notices import Fold
from tfyard.overview.wording import PROGRAM, TOOL, folded

FLUSH_EVERY = 0.1
LINES_PER_FLUSH = 200
"""That a person may be shown at once; the rest is counted."""
TELL_SKIPPED_EVERY = 1.0
RESTART = "restart"


class Options(Struct, frozen=True):
    """Of the command, by their names."""

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
    """On a terminal, without the notices of TensorFlow's runtime."""


def of_job(found: target.ClusterJob, given: Options) -> int:
    """The exit code: the job's own, if it is followed to its end."""
    from tfyard import formats

    job = formats.check(found.found.manifest).job
    if job is None:
        raise Usage(f"{found.found.name} cannot be read: `tfyard describe {found.found.name}` says why")
    tasks = [task.name for task in job.tasks()]
    meant = wanted(given, tasks)
    status = found.found.summary.status
    shown = printer(tasks, meant, given, status.start_time)
    if given.follow:
        return _follow(found, meant, shown)
    from tfyard.remote import logs

    for event in logs.read(found.client, found.found, meant):
        shown.show(event)
    shown.close()
    return 0


def _follow(found: target.ClusterJob, meant: Wanted, shown: Printer) -> int:
    import asyncio

    from tfyard.extras import needs

    with needs("kubernetes", "tfyard logs -f"):
        from tfyard.remote import log_follow

    async def run() -> int:
        following = log_follow.follow(found.client.access, found.found, meant, shown.show)
        async for verdict in following:
            shown.flush()
            if verdict:
                shown.close()
                target.say(verdict.text)
                return verdict.code
        return 0

    found.client.close()
    return asyncio.run(run())


def wanted(given: Options, tasks: list[str]) -> Wanted:
    attempt, restart = attempt_of(given.attempt)
    since = _since(given.since)
    return Wanted(
        tasks=chosen(given.words, tasks),
        tail=given.tail if given.tail >= 0 else None,
        since=since,
        since_restart=given.since == RESTART,
        times=bool(given.timestamps),
        attempt=attempt,
        restart=restart,
        all_attempts=given.all_attempts,
    )


def _since(text: str) -> datetime | None:
    if text in ("", RESTART):
        return None
    from tfyard.formats import durations

    seconds = durations.parse(text)
    if seconds is None:
        raise Usage(f"--since {text}: must be a duration, for example 90s, 5m or 1h30m, or restart")
    return datetime.now(UTC) - timedelta(seconds=seconds)


def printer(tasks: list[str], meant: Wanted, given: Options, began: datetime | None) -> Printer:
    is_terminal = sys.stdout.isatty()
    look = Look(
        prefix=given.prefix and (len(meant.tasks) > 1 or meant.all_attempts),
        times=given.timestamps,
        began=began,
        is_json=given.output == "json",
        is_coloured=is_terminal and not os.environ.get("NO_COLOR"),
        may_skip=is_terminal and given.follow,
        folds=is_terminal and given.folds,
        pattern=_pattern(given.grep),
    )
    return Printer(tasks, look)


def _pattern(text: str) -> re.Pattern[bytes] | None:
    try:
        return re.compile(text.encode()) if text else None
    except re.error as problem:
        raise Usage(f"--grep {text}: {problem}") from None


# --- printing


class Look(Struct, frozen=True, kw_only=True):
    prefix: bool = True
    times: str = ""
    """utc, or relative to `began`."""
    began: datetime | None = None
    is_json: bool = False
    is_coloured: bool = False
    may_skip: bool = False
    folds: bool = False
    """Without the notices of TensorFlow's runtime, as `tfyard run` shows it."""
    pattern: re.Pattern[bytes] | None = None


class Printer:
    def __init__(self, tasks: Sequence[str], look: Look) -> None:
        self._look, self._width = look, max(map(len, tasks), default=0)
        self._colours = colours.of_tasks(tasks) if look.is_coloured else {}
        self._greps: dict[Start, Grep] = {}
        self._skipped: Counter[Start] = Counter()
        self._fold = Fold(active=look.folds)
        self._shown, self._flushed, self._told = 0, 0.0, 0.0
        self._encoder = msgspec.json.Encoder()

    def show(self, event: LogEvent) -> None:
        if isinstance(event, Said):
            self._close_grep(event)
            self._tell_folded(event)
            self._say(event)
        else:
            self._print(self._within_limits(self._found(self._unfolded(event))))
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
        kept = [at for at, rest in enumerate(shown) if rest]
        stamps = [lines.stamps[at] for at in kept] if lines.stamps else ()
        return Lines(lines.start, [shown[at][0].encode() for at in kept], stamps)

    def _tell_folded(self, said: Said) -> None:
        if said.start and said.kind == "ended" and (count := self._fold.report(said.start.task)):
            self._say(Said(kind="folded", text=folded(count), start=said.start))

    def _found(self, lines: Lines) -> Lines:
        if self._look.pattern is None:
            return lines
        grep = self._greps.setdefault(lines.start, Grep(self._look.pattern))
        return _lines(lines.start, grep.take(lines.texts, lines.stamps))

    def _close_grep(self, said: Said) -> None:
        """Nothing follows what is said to have ended."""
        if said.start and said.kind == "ended" and (grep := self._greps.pop(said.start, None)):
            self._print(_lines(said.start, grep.close()))

    def _within_limits(self, lines: Lines) -> Lines:
        """The newest of a flood, so that the screen shows what happens now."""
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
            self._say(Said(kind="skipped", text=text, start=start))
        self._skipped.clear()

    # --- writing

    def _print(self, lines: Lines) -> None:
        if not lines.texts:
            return
        if self._look.is_json:
            sys.stdout.buffer.write(self._encoder.encode_lines(_objects(lines)))
            return
        text = clean_lines(b"\n".join(lines.texts), LONGEST_LINE)
        text = _ended(text) if self._look.is_coloured else without_colours(text)
        if self._look.times and lines.stamps:
            rows = zip(map(self._time, lines.stamps), text.split("\n"), strict=True)
            text = "\n".join(f"{at} {row}" for at, row in rows)
        sys.stdout.buffer.write(self._labelled(lines.start, text).encode("utf-8", "replace"))

    def _labelled(self, start: Start, text: str) -> str:
        """In front of each line, and on a terminal of each row of a long one, its task."""
        if not self._look.prefix:
            return f"{text}\n"
        label, width = self._name(start, PROGRAM), columns()
        if width is not None:
            room = width - max(self._width, len(start.name)) - len(f" {PROGRAM} ")
            text = "\n".join(row for line in text.split("\n") for row in _rows(line, room))
        return f"{label}{text.replace(chr(10), chr(10) + label)}\n"

    def _say(self, said: Said) -> None:
        if self._look.is_json:
            row = {"event": said.kind, **_names(said.start), "message": said.text}
            sys.stdout.buffer.write(self._encoder.encode(row) + b"\n")
            return
        sys.stdout.flush()
        label = self._name(said.start, TOOL) if said.start else "tfyard: "
        first, *rest = without_colours(clean_lines(said.text.encode(), SCREEN_LINE)).split("\n")
        click.echo("\n".join([label + first, *(f"    {line}" for line in rest)]), err=True)

    def _name(self, start: Start, mark: str) -> str:
        label = f"{start.name:<{self._width}} {mark} "
        return click.style(label, fg=self._colours[start.task]) if start.task in self._colours else label

    def _time(self, stamp: bytes) -> str:
        if self._look.times == "relative" and self._look.began:
            return relative(stamp, self._look.began)
        return clock(stamp)


def _lines(start: Start, found: Sequence[tuple[bytes, bytes]]) -> Lines:
    stamps = [stamp for _, stamp in found if stamp]
    return Lines(start, [text for text, _ in found], stamps)


def _objects(lines: Lines) -> list[dict[str, object]]:
    names = _names(lines.start)
    texts = without_colours(clean_lines(b"\n".join(lines.texts), LONGEST_LINE)).split("\n")
    if not lines.stamps:
        return [{**names, "text": text} for text in texts]
    return [
        {"time": stamp.decode(), **names, "text": text}
        for stamp, text in zip(lines.stamps, texts, strict=True)
    ]


def _rows(line: str, room: int) -> list[str]:
    """A line that is too long loses its colours: they would count as columns."""
    return [line] if len(line) <= room and line.isascii() else wrapped(without_colours(line), room)


def _names(start: Start | None) -> dict[str, object]:
    return {"task": start.task, "attempt": start.attempt, "restart": start.restart} if start else {}


def _ended(text: str) -> str:
    """A colour ends with its line."""
    if "\x1b" not in text:
        return text
    return "\n".join(f"{line}\x1b[0m" if "\x1b" in line else line for line in text.split("\n"))
