"""The logs of a run's containers, read as they grow: lines and metrics as events."""

import time
from collections.abc import Callable, Iterable
from re import Pattern

from msgspec.structs import asdict

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.formats.loglines import COUNTS, Reading, read_line, read_lines, storable
from tfyard.model import run_events
from tfyard.node.logs import Follower, Found, Lines, Skipped
from tfyard.node.node import ContainerStarted
from tfyard.overview.epochs import Epochs


class LogReader:
    """`pattern`: a regex of the user's for metrics. Metrics are also kept in the run's directory."""

    def __init__(
        self,
        directory: RunDirectory,
        watch: Callable[[run_events.RunEvent], None],
        pattern: Pattern[str] | None,
        *,
        for_screen: bool,
    ) -> None:
        self._directory, self._watch, self._pattern = directory, watch, pattern
        self._for_screen = for_screen
        self._followers: dict[ContainerStarted, Follower] = {}
        self._epochs = Epochs()

    def open(self, started: ContainerStarted) -> None:
        self._epochs.forget(started.log_name)
        self._followers[started] = Follower(started.log_name, started.log, for_screen=self._for_screen)

    def close(self, started: ContainerStarted) -> None:
        self._emit(self._followers.pop(started).close())

    def read(self) -> bool:
        """Some of what is new; whether there is more."""
        for follower in list(self._followers.values()):
            self._emit(follower.read())
        return any(follower.is_behind for follower in self._followers.values())

    def _emit(self, found: Iterable[Found]) -> None:
        for item in found:
            if isinstance(item, Lines):
                self._emit_lines(item)
            elif isinstance(item, Skipped):
                self._watch(run_events.Skipped(item.source, item.lines))
            else:
                self._watch(run_events.Unfinished(item.source, item.text))
                if item.is_rewritten and (reading := read_line(item.text, self._pattern)):
                    self._emit_metric(item.source, self._epochs.place(item.source, reading), unfinished=True)

    def _emit_lines(self, lines: Lines) -> None:
        self._watch(run_events.Log(lines.source, lines.text))
        readings = [self._epochs.place(lines.source, r) for r in read_lines(lines.text, self._pattern)]
        self._directory.append("metrics.jsonl", *(_row(lines.source, reading) for reading in readings))
        for reading in readings:
            self._emit_metric(lines.source, reading)

    def _emit_metric(self, task: str, reading: Reading, *, unfinished: bool = False) -> None:
        self._watch(run_events.Metric(task=task, **asdict(reading), unfinished=unfinished))


def _row(task: str, reading: Reading) -> dict[str, object]:
    counts = {name: count for name in COUNTS if (count := getattr(reading, name)) is not None}
    return {**storable(reading.values), "at": time.time(), "task": task, "step": None, **counts}
