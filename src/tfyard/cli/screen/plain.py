"""Plain lines, for pipes, CI logs and people who want no colour: `worker-0 │ …`."""

import sys

from tfyard.cli.screen.base import Screen
from tfyard.formats.loglines import without_colours
from tfyard.model.run_events import Ended, Log, Note, Phase, RunEvent, Skipped, Started
from tfyard.overview.wording import ending, skipped, starting_again


class PlainScreen(Screen):
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
