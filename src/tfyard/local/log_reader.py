"""The logs of a run's containers, read as they grow: lines and metrics as events."""

import time
from collections.abc import Callable, Iterable
from re import Pattern

from msgspec.structs import asdict, replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.formats.loglines import COUNTS, Reading, read_line, read_lines, storable
from tfyard.model import run_events
from tfyard.node.logs import Follower, Found, Lines, Skipped
from tfyard.node.node import ContainerStarted


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
        self._epochs: dict[str, Reading] = {}
        """Log name -> where in which epoch it is."""

    def open(self, started: ContainerStarted) -> None:
        self._epochs.pop(started.log_name, None)
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
                    self._emit_metric(item.source, self._in_epoch(item.source, reading), unfinished=True)

    def _emit_lines(self, lines: Lines) -> None:
        self._watch(run_events.Log(lines.source, lines.text))
        found = read_lines(lines.text, self._pattern, is_flood=lines.is_flood)
        readings = [self._in_epoch(lines.source, reading) for reading in found]
        self._directory.append("metrics.jsonl", *(_row(lines.source, reading) for reading in readings))
        for reading in readings:
            self._emit_metric(lines.source, reading)

    def _emit_metric(self, task: str, reading: Reading, *, unfinished: bool = False) -> None:
        self._watch(run_events.Metric(task=task, **asdict(reading), unfinished=unfinished))

    def _in_epoch(self, source: str, reading: Reading) -> Reading:
        """Keras names the epoch once, in the line before its progress bar. A bar that starts again or has another
        length without a new epoch is not of the training: it evaluates or predicts."""
        before = self._epochs.get(source)
        if reading.epoch is None and before is not None and _continues(before, reading):
            reading = replace(reading, epoch=before.epoch, epochs=before.epochs)
        if reading.epoch is not None:
            self._epochs[source] = reading
        elif reading.total is not None:
            self._epochs.pop(source, None)
        return reading


def _continues(before: Reading, after: Reading) -> bool:
    if after.step is None or before.step is None:
        return after.step is not None
    return after.step >= before.step and (before.total is None or after.total == before.total)


def _row(task: str, reading: Reading) -> dict[str, object]:
    counts = {name: count for name in COUNTS if (count := getattr(reading, name)) is not None}
    return {**storable(reading.values), "at": time.time(), "task": task, "step": None, **counts}
