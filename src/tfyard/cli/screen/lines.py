"""A run as lines: plain ones for people, JSON for scripts."""

import sys
import time

import msgspec

from tfyard.cli.screen.base import Screen
from tfyard.cli.screen.rows import columns, hanging, wrapped
from tfyard.formats.loglines import storable, without_colours
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
from tfyard.overview.chatter import Fold
from tfyard.overview.wording import PROGRAM, TOOL, ending, folded, skipped, starting_again


class PlainScreen(Screen):
    """For pipes, CI logs and people who want no colour: `worker-0 │ …`. On a terminal, long lines are wrapped
    below their task, and chatter is folded; a pipe gets everything."""

    def __init__(self, tasks: list[str], *, quiet: bool, verbose: bool) -> None:
        self._width = max((len(task) for task in tasks), default=0)
        self._quiet = quiet
        is_terminal = columns() is not None
        self._fold = Fold(active=is_terminal and not verbose)
        self.may_skip = is_terminal or quiet

    def show(self, event: RunEvent) -> None:
        match event:
            case Note("error" | "warning" as level, text):
                self._say(f"{level}: {text}", always=True)
            case Log(task, text):
                self._print_log(task, without_colours(text))
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

    def _say_of(self, task: str, text: str) -> None:
        self._say(f"{task:<{self._width}} {TOOL} {text}")

    def _say(self, text: str, *, always: bool = False) -> None:
        self._print(hanging(text, columns()), always=always)

    def _print(self, text: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


def _write_labelled(label: bytes, text: bytes) -> None:
    """Many times faster than as text, because the label is not ASCII and most logs are."""
    sys.stdout.buffer.write(label + text.replace(b"\n", b"\n" + label) + b"\n")
    sys.stdout.buffer.flush()


class JsonScreen(Screen):
    """One JSON object per line and event, for scripts."""

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
