"""The logs of a run on this machine, as the logs of a job on a cluster are read."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.node.logs import Follower, Found
from tfyard.node.logs import Lines as FileLines
from tfyard.overview.log_lines import Lines, LogEvent, Said, Start, Wanted
from tfyard.overview.wording import starting_again

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
