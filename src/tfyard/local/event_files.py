"""The summaries that tasks of a run write: metrics of programs that print none.

A program may write them anywhere. It keeps the file open meanwhile, so the files are found among those that its
processes have open: no folder is searched, and each file is known to be of one task.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from tfyard.logs.event_files import EventFileDecoder, reading
from tfyard.logs.readings import Reading
from tfyard.node.orphans import stat_fields

EVENT_FILE = ".tfevents."
CHUNK = 1 << 20


class EventFiles:
    """The event files of the tasks of a run."""

    def __init__(self) -> None:
        self._files: dict[tuple[int, int], EventFile] = {}
        """Device and inode -> the file."""

    def find(self, sessions: Mapping[int, str]) -> None:
        """Opens the event files that processes have open now. `sessions`: process that leads a session -> task."""
        for pid, task in _processes(sessions):
            for path, name in _open_files(pid):
                self._open(path, Path(name), task)

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
