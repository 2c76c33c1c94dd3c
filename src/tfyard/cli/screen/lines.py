"""A run as lines: plain ones for people, JSON for scripts."""

import sys
import time

import msgspec

from tfyard.cli.screen.base import Screen
from tfyard.formats.loglines import storable, without_colours
from tfyard.model.run_events import Counts, Ended, Log, Metric, Note, Phase, RunEvent, Skipped, Started
from tfyard.overview.wording import ending, skipped, starting_again


class PlainScreen(Screen):
    """For pipes, CI logs and people who want no colour: `worker-0 │ …`."""

    def __init__(self, tasks: list[str], *, quiet: bool) -> None:
        self._width = max((len(task) for task in tasks), default=0)
        self._quiet = quiet

    def show(self, event: RunEvent) -> None:
        match event:
            case Note("error" | "warning" as level, text):
                self._say(f"{level}: {text}", always=True)
            case Log(task, text):
                self._line(task, without_colours(text))
            case Skipped(task, lines):
                self._line(task, skipped(lines))
            case Started(task, start, _) if start > 1:
                self._line(task, starting_again(start))
            case Ended(task):
                self._line(task, ending(event))
            case Phase("Restarting", _):
                pass  # the warning that comes with it says so, and why
            case Phase(phase, _):
                self._say(f"job {phase.lower()}")
            case Note(_, text):
                self._say(text)

    def _line(self, task: str, text: str) -> None:
        self._say(f"{task:<{self._width}} │ {text}")

    def _say(self, text: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


class JsonScreen(Screen):
    """One JSON object per line and event, for scripts."""

    def __init__(self, *, quiet: bool) -> None:
        self._counts: Counts | None = None
        self._quiet = quiet

    def show(self, event: RunEvent) -> None:
        if self._quiet and isinstance(event, Log | Skipped):
            return
        if isinstance(event, Counts):
            if event == self._counts:
                return
            self._counts = event
        row = msgspec.to_builtins(event)
        if isinstance(event, Metric):
            row["values"] = storable(event.values)
        sys.stdout.write(msgspec.json.encode({"time": round(time.time(), 3), **row}).decode() + "\n")
        sys.stdout.flush()
