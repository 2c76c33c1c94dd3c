"""The summaries that tasks of a run write: metrics of programs that print none.

A program may write them anywhere. It keeps the file open meanwhile, so the files are found among those that its
processes have open, and each file is known to be of one task. Folders are searched only for a program that has
ended before its open files were looked at.
"""

import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tfyard.logs.event_files import EventFileDecoder, reading
from tfyard.logs.readings import Reading
from tfyard.node.orphans import stat_fields

EVENT_FILE = ".tfevents."
CHUNK = 1 << 20
MOST_ENTRIES, MOST_IN_ONE = 5000, 1000
"""Files and folders that a search looks at, the nearest ones first; and those of one folder."""


class EventFiles:
    """The event files of the tasks of a run."""

    def __init__(self) -> None:
        self._files: dict[tuple[int, int], EventFile] = {}
        """Device and inode -> the file."""
        self._tasks: set[str] = set()
        """Tasks of which a file was found."""

    def find(self, sessions: Mapping[int, str]) -> None:
        """Opens the event files that processes have open now. `sessions`: process that leads a session -> task."""
        for pid, task in _processes(sessions):
            for path, name in _open_files(pid):
                self._open(path, Path(name), task)

    def search(self, folders: Iterable[Path], since: float, task: str) -> None:
        """Opens event files below folders that were written since then, unless some of the task were open."""
        for path in _written(folders, since) if task not in self._tasks else ():
            self._open(str(path), path, task)

    def read(self, task: str | None = None) -> Iterator[tuple[str, float, Reading]]:
        """New metrics: their task, their time, their values. `task`: only of this task, which has ended."""
        for key, file in [*self._files.items()]:
            if task is None or file.task == task:
                yield from file.read()
            if file.task == task:
                self._files.pop(key).close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _open(self, path: str, name: Path, task: str) -> None:
        try:
            stat = os.stat(path)  # noqa: PTH116 - of a link in /proc, which no Path needs to be made for
            if (key := (stat.st_dev, stat.st_ino)) not in self._files:
                self._files[key] = EventFile(open(path, "rb"), name.parent.name, task)  # noqa: PTH123, SIM115
                self._tasks.add(task)
        except OSError:
            return  # its process has ended or closed it; a file that matters is found at the next look


class EventFile:
    def __init__(self, file: BinaryIO, folder: str, task: str) -> None:
        self._file, self._folder, self.task = file, folder, task
        self._decoder = EventFileDecoder()

    def read(self) -> Iterator[tuple[str, float, Reading]]:
        while data := self._file.read(CHUNK):
            for scalar in self._decoder.decode(data):
                if metric := reading(scalar, self._folder):
                    yield self.task, scalar.at, metric

    def close(self) -> None:
        self._file.close()


def _processes(sessions: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Each running process of the sessions, and its task."""
    for entry in os.scandir("/proc") if sessions else ():
        if entry.name.isdigit() and (fields := stat_fields(entry.name)) and int(fields[3]) in sessions:
            yield entry.name, sessions[int(fields[3])]


def _open_files(pid: str) -> Iterator[tuple[str, str]]:
    """Path in /proc and name of each event file that a process has open."""
    try:
        entries = [entry.path for entry in os.scandir(f"/proc/{pid}/fd")]
        for path in entries:
            if EVENT_FILE in (name := os.readlink(path)):  # noqa: PTH115
                yield path, name
    except OSError:
        return  # the process has ended, or is another user's


def _written(folders: Iterable[Path], since: float) -> Iterator[Path]:
    """Event files below folders. Those with a dot, such as `.git`, are not entered."""
    waiting, left = deque(map(str, folders)), MOST_ENTRIES
    while waiting and left > 0:
        try:
            entries = [*itertools.islice(os.scandir(waiting.popleft()), MOST_IN_ONE)]
        except OSError:
            continue  # it is not there, or may not be read
        left -= len(entries)
        for entry in entries:
            if EVENT_FILE in entry.name:
                with suppress(OSError):  # it was removed
                    if entry.stat().st_mtime >= since:
                        yield Path(entry.path)
            elif entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
