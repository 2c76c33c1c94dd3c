"""The logs of a run on this machine: read as those of a job on a cluster, and, by the run itself, as events."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.formats.loglines import COUNTS, Reading, read_line, read_lines, storable
from tfyard.model import run_events
from tfyard.node.logs import Follower, Found, Skipped
from tfyard.node.logs import Lines as FileLines
from tfyard.overview.epochs import Epochs
from tfyard.overview.log_lines import Lines, LogEvent, Said, Start, Wanted
from tfyard.overview.wording import starting_again

if TYPE_CHECKING:
    from tfyard.node.node import ContainerStarted  # brings asyncio, which readers do not need

LOOK_EVERY = 0.2


def tasks(run: RunDirectory) -> list[str]:
    """Of the record, which has them all, also those that never started."""
    record = run.load()
    return [task.name for task in record.tasks] if record else []


def read(run: RunDirectory, wanted: Wanted) -> Iterator[LogEvent]:
    files = _files(run, wanted)
    if not files:
        yield Said(kind="waiting", text=f"{run.name} has no such logs")
    for start, path in files.items():
        found = _lines(start, Follower("", path).close())
        yield from found if wanted.tail is None else _last(found, start, wanted.tail)


def follow(run: RunDirectory, wanted: Wanted) -> Iterator[LogEvent | None]:
    """Until the run has ended; None whenever nothing is new."""
    open_ = {start: Follower("", path) for start, path in _files(run, wanted).items()}
    seen = set(open_)
    if wanted.tail is not None:
        for start, follower in open_.items():
            yield from _last(_caught_up(start, follower), start, wanted.tail)
    while _is_running(run):
        yield from _begin(run, wanted, open_, seen)
        yield from _progress(open_)
        yield None
        time.sleep(LOOK_EVERY)
    yield from _begin(run, wanted, open_, seen)
    for start in sorted(open_):
        yield from _lines(start, open_[start].close())


def _is_running(run: RunDirectory) -> bool:
    record = run.load()
    return record is not None and record.ended is None


def _begin(
    run: RunDirectory, wanted: Wanted, open_: dict[Start, Follower], seen: set[Start]
) -> Iterator[LogEvent]:
    """With starts that are newer than those that were seen."""
    for start, path in _all_files(run, wanted).items():
        earlier = [each for each in seen if each.task == start.task]
        if start in seen or any(each > start for each in earlier):
            continue
        if earlier:
            yield Said(kind="restarted", text=starting_again(start.attempt), start=start)
        seen.add(start)
        open_[start] = Follower("", path)


def _caught_up(start: Start, follower: Follower) -> Iterator[LogEvent]:
    while follower.is_behind:
        yield from _lines(start, follower.read())


def _progress(open_: dict[Start, Follower]) -> Iterator[LogEvent]:
    newest = {start.task: start for start in sorted(open_)}
    for start in sorted(open_):
        if start != newest[start.task]:
            yield from _lines(start, open_.pop(start).close())
        else:
            yield from _lines(start, open_[start].read())


def _files(run: RunDirectory, wanted: Wanted) -> dict[Start, Path]:
    """By start; without --attempt, the last of each task."""
    found = _all_files(run, wanted)
    if wanted.all_attempts or wanted.attempt is not None:
        return found
    last = {start.task: start for start in sorted(found)}
    return {start: path for start, path in found.items() if last[start.task] == start}


def _all_files(run: RunDirectory, wanted: Wanted) -> dict[Start, Path]:
    return {start: path for path in run.logs() if wanted.includes(start := _start(path))}


def _start(path: Path) -> Start:
    task, number, _ = path.name.rsplit(".", 2)
    return Start(task, int(number) if number.isdigit() else 1)


def _lines(start: Start, found: Iterable[Found]) -> Iterator[LogEvent]:
    for item in found:
        if isinstance(item, FileLines):
            yield Lines(start, item.text.encode("utf-8", "replace").split(b"\n"))


def _last(found: Iterable[LogEvent], start: Start, count: int) -> Iterator[LogEvent]:
    kept = deque((text for event in found if isinstance(event, Lines) for text in event.texts), maxlen=count)
    if kept:
        yield Lines(start, list(kept))


class LogReader:
    """The logs of a run's containers as they grow: lines and metrics as events. Metrics are also kept in the run's
    directory. `pattern`: a regex of the user's for metrics."""

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

    def open(self, started: "ContainerStarted") -> None:
        self._epochs.forget(started.log_name)
        self._followers[started] = Follower(started.log_name, started.log, for_screen=self._for_screen)

    def close(self, started: "ContainerStarted") -> None:
        self._emit(self._followers.pop(started).close())

    def read(self) -> bool:
        """Some of what is new; whether there is more."""
        for follower in list(self._followers.values()):
            self._emit(follower.read())
        return any(follower.is_behind for follower in self._followers.values())

    def _emit(self, found: Iterable[Found]) -> None:
        for item in found:
            if isinstance(item, FileLines):
                self._emit_lines(item)
            elif isinstance(item, Skipped):
                self._watch(run_events.Skipped(item.source, item.lines))
            else:
                self._watch(run_events.Unfinished(item.source, item.text))
                if item.is_rewritten and (reading := read_line(item.text, self._pattern)):
                    self._emit_metric(item.source, self._epochs.place(item.source, reading), unfinished=True)

    def _emit_lines(self, lines: FileLines) -> None:
        self._watch(run_events.Log(lines.source, lines.text))
        found = read_lines(lines.text, self._pattern, is_flood=lines.is_flood)
        readings = [self._epochs.place(lines.source, reading) for reading in found]
        self._directory.append("metrics.jsonl", *(_row(lines.source, reading) for reading in readings))
        for reading in readings:
            self._emit_metric(lines.source, reading)

    def _emit_metric(self, task: str, reading: Reading, *, unfinished: bool = False) -> None:
        self._watch(run_events.Metric(task=task, **asdict(reading), unfinished=unfinished))


def _row(task: str, reading: Reading) -> dict[str, object]:
    counts = {name: count for name in COUNTS if (count := getattr(reading, name)) is not None}
    return {**storable(reading.values), "at": time.time(), "task": task, "step": None, **counts}
