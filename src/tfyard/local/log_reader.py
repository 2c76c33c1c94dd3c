"""The logs of a run's containers, read as they grow: lines and metrics as events."""

import time
from collections.abc import Callable, Iterable
from re import Pattern

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.formats.loglines import Reading, read_line, storable
from tfyard.model import run_events
from tfyard.node.logs import Follower, Line, Skipped
from tfyard.node.node import ContainerStarted


class LogReader:
    """`pattern`: a regex of the user's for metrics. Metrics are also kept in the run's directory."""

    def __init__(
        self,
        directory: RunDirectory,
        watch: Callable[[run_events.RunEvent], None],
        pattern: Pattern[str] | None,
    ) -> None:
        self._directory, self._watch, self._pattern = directory, watch, pattern
        self._followers: dict[ContainerStarted, Follower] = {}

    def open(self, started: ContainerStarted) -> None:
        self._followers[started] = Follower(started.log_name, started.log)

    def close(self, started: ContainerStarted) -> None:
        self._emit(self._followers.pop(started).close())

    def read(self) -> None:
        for follower in list(self._followers.values()):
            self._emit(follower.read())

    def _emit(self, lines: Iterable[Line | Skipped]) -> None:
        for line in lines:
            if isinstance(line, Skipped):
                self._watch(run_events.Skipped(line.source, line.lines))
                continue
            self._watch(run_events.Log(line.source, line.text))
            reading = read_line(line.text, self._pattern)
            if reading is not None:
                self._emit_metric(line.source, reading)

    def _emit_metric(self, task: str, reading: Reading) -> None:
        row = {**storable(reading.values), "at": time.time(), "task": task, "step": reading.step}
        self._directory.append("metrics.jsonl", row)
        self._watch(
            run_events.Metric(
                task=task,
                values=reading.values,
                step=reading.step,
                total=reading.total,
                epoch=reading.epoch,
                epochs=reading.epochs,
            )
        )
