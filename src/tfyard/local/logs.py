"""Logs of a run on this machine: read like those of a job on a cluster, and by the run itself as events."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import asdict, replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.logs import remarks
from tfyard.logs.epochs import Epochs
from tfyard.logs.lines import Lines, LogEvent, LogSelection, Remark, Start
from tfyard.logs.readings import Reading, read_line, read_lines
from tfyard.model import Ending, LastLine, run_events
from tfyard.node.log_times import PERIOD, SECOND, TimeIndex, rfc3339
from tfyard.node.logs import LogFileFollower, LogPart, SkippedLines, line_start, start_of_last
from tfyard.node.logs import WrittenLines as FileLines
from tfyard.overview.cause import named
from tfyard.overview.metrics import row

if TYPE_CHECKING:
    from tfyard.backends.local.node import ContainerStarted  # brings asyncio, which readers do not need

LOOK_EVERY = 0.2
"""Seconds between two looks at the logs of a run that is followed."""


def read(run: RunDirectory, wanted: LogSelection) -> Iterator[LogEvent]:
    wanted = _since_restart(run, wanted)
    logs = _logs(run, wanted)
    if not logs:
        yield Remark(kind="waiting", text=f"{run.name} has no such logs")
    yield from _missing_times(logs, wanted)
    for start, log in logs.items():
        if start.container:
            yield remarks.of_init_container(start, _ending_of(run, start))
        yield from log.read(is_over=True)


def follow(run: RunDirectory, wanted: LogSelection) -> Iterator[LogEvent | None]:
    """Events until the run has ended; None whenever nothing is new. The caller then sleeps for `LOOK_EVERY`: one
    loop may follow many runs."""
    wanted = _since_restart(run, wanted)
    open_ = _logs(run, wanted)
    seen = set(open_)
    yield from _missing_times(open_, wanted)
    while _is_running(run):
        yield from _begin(run, wanted, open_, seen)
        yield from _progress(open_)
        yield None
    yield from _begin(run, wanted, open_, seen)
    for start in sorted(open_):
        yield from open_[start].read(is_over=True)


class _LogFile:
    """Log of one start of a task, from the requested line on, with the times of its lines if they are kept."""

    def __init__(self, start: Start, path: Path, wanted: LogSelection) -> None:
        self._start, self._path, self._wanted = start, path, wanted
        self.times = TimeIndex(path)
        self._follower: LogFileFollower | None = None

    def read(self, *, is_over: bool) -> Iterator[LogEvent]:
        """New lines; at the end also a last line without a line break."""
        end = self.times.look(is_over=is_over)
        if self._follower is None:
            if end == 0 and not self.times.is_kept and not is_over:  # there may be an index by the next look
                return
            self._follower = LogFileFollower("", self._path, offset=self._first(end, is_over=is_over))
        while (at := self._follower.offset) < end:
            size, written = self.times.covering(at + 1)
            yield from self._lines(self._follower.read(size), written)
            if self._follower.offset == at:
                break  # the file was truncated
        if is_over and end:
            yield from self._lines(self._follower.close(end), self.times.covering(end)[1])

    def _first(self, end: int, *, is_over: bool) -> int:
        """Offset of the first line to read. A line without an end counts as written when it last grew."""
        since, tail = self._wanted.since, self._wanted.tail
        if end == 0 or (since is None and tail is None):
            return 0
        before = self.times.since(int(since.timestamp() * SECOND)) if since else 0
        if is_over and before == end:
            return end
        with self._path.open("rb") as file:
            last = start_of_last(file.fileno(), (0, end), tail) if tail is not None else 0
            return max(last, line_start(file.fileno(), 0, before))

    def _lines(self, parts: Iterable[LogPart], written: int) -> Iterator[LogEvent]:
        for item in parts:
            if isinstance(item, FileLines):
                texts = item.text.encode("utf-8", "replace").split(b"\n")
                stamps = [rfc3339(written).encode()] * len(texts) if self.times.is_kept else ()
                yield Lines(self._start, texts, stamps)


def _since_restart(run: RunDirectory, wanted: LogSelection) -> LogSelection:
    """For --since restart, the logs since the last restart of a task."""
    restarted = [path for start, path in _files(run, wanted).items() if start.attempt > 1]
    if not wanted.since_restart or not restarted:
        return wanted
    began = max(TimeIndex(path).load().began for path in restarted)
    return replace(wanted, since=datetime.fromtimestamp(began / SECOND, UTC) if began else None)


def _missing_times(logs: dict[Start, _LogFile], wanted: LogSelection) -> Iterator[Remark]:
    """One note for all logs without times: an older tfyard wrote them, or the disk was full."""
    names = [start.name for start, log in logs.items() if not log.times.index.exists()]
    if names and (wanted.times or wanted.since):
        text = f"no times were recorded for the lines of {named(names)}"
        since = "; of a log that was written to since then, everything is shown" if wanted.since else ""
        yield Remark(kind="times", text=text + since)


def _is_running(run: RunDirectory) -> bool:
    record = run.load()
    return record is not None and record.ended is None


def _begin(
    run: RunDirectory, wanted: LogSelection, open_: dict[Start, _LogFile], seen: set[Start]
) -> Iterator[LogEvent]:
    """Opens the logs of starts that are newer than all seen before, from their first line on."""
    for start, path in _all_files(run, wanted).items():
        earlier = [each for each in seen if (each.task, each.container) == (start.task, start.container)]
        if start in seen or any(each > start for each in earlier):
            continue
        if earlier:
            yield remarks.restarted(start, _end_before(run, start))
        seen.add(start)
        open_[start] = _LogFile(start, path, replace(wanted, tail=None))


def _end_before(run: RunDirectory, start: Start) -> Ending | None:
    """Ending of the start before this one, from the status of the run."""
    of_task = (each for each in run.status().endings if each.task == start.task)
    return next((each for each in of_task if each.attempt + each.restart == start.attempt - 1), None)


def _ending_of(run: RunDirectory, start: Start) -> Ending | None:
    """How the last run of an init container ended, if it failed."""
    endings = reversed(run.status().endings)
    return next((e for e in endings if (e.task, e.container) == (start.task, start.container)), None)


def _progress(open_: dict[Start, _LogFile]) -> Iterator[LogEvent]:
    newest = {start.task: start for start in sorted(open_)}
    for start in sorted(open_):
        if start != newest[start.task]:
            yield from open_.pop(start).read(is_over=True)
        else:
            yield from open_[start].read(is_over=False)


def _logs(run: RunDirectory, wanted: LogSelection) -> dict[Start, _LogFile]:
    return {start: _LogFile(start, path, wanted) for start, path in _files(run, wanted).items()}


def _files(run: RunDirectory, wanted: LogSelection) -> dict[Start, Path]:
    """Log files by start; without --attempt, only the last start of each task."""
    files = _all_files(run, wanted)
    if wanted.all_attempts or wanted.attempt is not None:
        return files
    last = {start.task: start for start in sorted(files)}
    return {start: path for start, path in files.items() if last[start.task] == start}


def _all_files(run: RunDirectory, wanted: LogSelection) -> dict[Start, Path]:
    """Log files of programs; of a task whose program never started, that of its last init container."""
    files = {start: path for path in run.logs() if wanted.includes(start := _start(path))}
    started = {start.task for start in files if not start.container}
    inits = {start: path.stat().st_mtime_ns for start, path in files.items() if start.task not in started}
    last = {start.task: start for start in sorted(inits, key=lambda each: inits[each])}
    return {s: path for s, path in files.items() if not s.container or last.get(s.task) == s}


def _start(path: Path) -> Start:
    """The start of a log file such as worker-0.1.log, or worker-0.prepare.1.log of another container."""
    name, number, _ = path.name.rsplit(".", 2)
    task, _, container = name.partition(".")
    return Start(task, int(number) if number.isdigit() else 1, container=container)


class SignOfLife(NamedTuple):
    """The last sign of life of a program: when, on the monotonic clock, and its last line."""

    at: float
    text: str = ""


class RunLogReader:
    """The logs of a run's containers as they grow: lines and metrics as events. Metrics are also kept in the run's
    directory. `pattern`: the user's regex for metrics."""

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
        self._followers: dict[ContainerStarted, LogFileFollower] = {}
        self._times: dict[ContainerStarted, TimeIndex] = {}
        self._heard: dict[ContainerStarted, SignOfLife] = {}
        self.heard_at = 0.0
        """When a program last wrote something, on the monotonic clock, which stops while the machine sleeps."""
        self._noticed = 0.0
        self._epochs = Epochs()
        self._printing: set[str] = set()
        """Tasks that print metrics."""

    def open(self, started: "ContainerStarted") -> None:
        self._epochs.forget(started.log_name)
        self._followers[started] = LogFileFollower(started.log_name, started.log, for_screen=self._for_screen)
        self._times[started] = TimeIndex(started.log)
        self._heard[started] = SignOfLife(time.monotonic())
        self._directory.attempt(self._times[started].begin)

    def begun(self, started: "ContainerStarted", line: bytes) -> None:
        """Takes a line that the program has not ended yet."""
        if started in self._followers:
            self._followers[started].begun = line

    def close(self, started: "ContainerStarted") -> None:
        self._directory.attempt(self._times.pop(started).end)
        self._emit(started, self._followers.pop(started).close())
        self._heard.pop(started)

    def read(self) -> bool:
        """Reads some of the new lines; whether there are more."""
        if time.monotonic() - self._noticed > PERIOD:
            self._noticed = time.monotonic()
            for times in self._times.values():
                self._directory.attempt(times.notice)
        for started, follower in list(self._followers.items()):
            self._emit(started, follower.read())
        return any(follower.is_behind for follower in self._followers.values())

    def has_metrics(self, task: str) -> bool:
        """Whether the task prints metrics."""
        return task in self._printing

    def report(self, task: str, at: float, reading: Reading) -> None:
        """Takes a metric from a task's summaries, unless the task prints metrics: they would be the same."""
        for started in self._heard:
            if started.log_name.partition(".")[0] == task:
                self._hear(started, self._heard[started].text)
        if not self.has_metrics(task):
            self._directory.append("metrics.jsonl", row(task, reading, at))
            self._emit_metric(task, reading)

    def last_line(self, uid: str, container: str) -> LastLine | None:
        """The last line of a container that runs, or since when it has written nothing."""
        for started, heard in self._heard.items():
            if (started.uid, started.container) == (uid, container):
                now, silence = datetime.now(UTC), timedelta(seconds=time.monotonic() - heard.at)
                return LastLine(seen=now, at=now - silence, text=heard.text)
        return None

    def go_on(self) -> None:
        """All programs were stopped for a while, and could write nothing."""
        for started, heard in self._heard.items():
            self._hear(started, heard.text)

    def _hear(self, started: "ContainerStarted", text: str) -> None:
        self.heard_at = time.monotonic()
        self._heard[started] = SignOfLife(self.heard_at, text)

    def _emit(self, started: "ContainerStarted", parts: Iterable[LogPart]) -> None:
        for item in parts:
            known = self._heard[started].text
            text = known if isinstance(item, SkippedLines) else item.text.rpartition("\n")[2].strip()
            self._hear(started, text or known)
            if isinstance(item, FileLines):
                self._emit_lines(item)
            elif isinstance(item, SkippedLines):
                self._watch(run_events.Skipped(item.source, item.lines))
            else:
                self._watch(run_events.Unfinished(item.source, item.text, item.is_rewritten))
                if item.is_rewritten and (reading := read_line(item.text, self._pattern)):
                    self._emit_metric(item.source, self._epochs.place(item.source, reading), unfinished=True)

    def _emit_lines(self, lines: FileLines) -> None:
        self._watch(run_events.Log(lines.source, lines.text))
        parsed = read_lines(lines.text, self._pattern, is_flood=lines.is_flood)
        readings = [self._epochs.place(lines.source, reading) for reading in parsed]
        now = time.time()
        self._directory.append("metrics.jsonl", *(row(lines.source, reading, now) for reading in readings))
        if any(reading.values for reading in readings):
            self._printing.add(lines.source)
        for reading in readings:
            self._emit_metric(lines.source, reading)

    def _emit_metric(self, task: str, reading: Reading, *, unfinished: bool = False) -> None:
        self._watch(run_events.Metric(task=task, **asdict(reading), unfinished=unfinished))
