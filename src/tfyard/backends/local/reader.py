"""The runs of this machine as a JobReader: their records, their events and their logs."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from tfyard import formats
from tfyard.backends.base import Read
from tfyard.errors import Usage
from tfyard.model import Event, Task
from tfyard.model.summary import JobSummary, RecordedEvent
from tfyard.node.logs import Follower, Found, Lines
from tfyard.overview.record import RunRecord

from .run_directory import HOME, RunDirectory, all_runs, find_run

T = TypeVar("T")

LOOK_EVERY = 0.2
"""Seconds between two looks at the files."""


class RunFiles(Struct, frozen=True):
    """A request to the disk: the files of one run, or of all."""

    home: Path
    file: str
    run: str = ""


class _Run(Struct, frozen=True):
    record: RunRecord
    status: Raw


class _Decision(Struct, frozen=True):
    at: datetime
    events: tuple[Event, ...] = ()


class LocalReader:
    def __init__(self, home: Path = HOME) -> None:
        self._home = home

    def list_jobs(self) -> Read[list[JobSummary]]:
        return Read(RunFiles(self._home, "status.json"), _summaries)

    def get_job(self, name: str) -> Read[JobSummary]:
        return Read(RunFiles(self._home, "status.json", name), lambda answer: _summaries(answer)[0])

    def list_events(self, name: str) -> Read[list[RecordedEvent]]:
        return Read(RunFiles(self._home, "decisions.jsonl", name), _events)

    async def watch(self) -> AsyncIterator[list[JobSummary]]:
        before = None
        while True:
            found = send(self.list_jobs())
            if found != before:
                yield found
            before = found
            await asyncio.sleep(LOOK_EVERY)

    async def follow(self, name: str, task: Task) -> AsyncIterator[str]:
        """Of its last start."""
        run = find_run(name, self._home)
        logs = run.logs(task.name)
        if not logs:
            raise Usage(f"{run.name} has no logs of {task.name}")
        follower = Follower(task.name, logs[-1])
        while (record := run.load()) is not None and record.ended is None:
            for line in _texts(follower.read()):
                yield line
            await asyncio.sleep(LOOK_EVERY)
        for line in _texts(follower.close()):
            yield line


def send(read: Read[T]) -> T:
    """The transport of this machine: the disk."""
    request: RunFiles = read.request
    runs = [find_run(request.run, request.home)] if request.run else list(all_runs(request.home))
    if request.file == "status.json":
        return read.decode(msgspec.json.encode([run for run in map(_run, runs) if run is not None]))
    return read.decode(b"".join(_content(run, request.file) for run in runs))


def _run(run: RunDirectory) -> _Run | None:
    record = run.load()
    return None if record is None else _Run(record, Raw(_content(run, "status.json") or b"{}"))


def _content(run: RunDirectory, file: str) -> bytes:
    path = run.path / file
    return path.read_bytes() if path.exists() else b""


def _summaries(answer: bytes) -> list[JobSummary]:
    runs = msgspec.json.decode(answer, type=list[_Run])
    return [_summary(run.record, msgspec.json.decode(run.status)) for run in runs]


def _summary(record: RunRecord, status: Any) -> JobSummary:
    """The record has the last word: a run that was killed could not write its status any more."""
    found = msgspec.structs.replace(formats.load_status({"status": status}), phase=record.phase)
    return JobSummary(name=record.name, job=record.job, created=record.started, status=found)


def _events(answer: bytes) -> list[RecordedEvent]:
    decisions = (msgspec.json.decode(line, type=_Decision) for line in answer.splitlines())
    return [
        RecordedEvent(type=event.type, reason=event.reason, message=event.message, at=decision.at)
        for decision in decisions
        for event in decision.events
    ]


def _texts(found: Iterable[Found]) -> list[str]:
    return [line for part in found if isinstance(part, Lines) for line in part.text.split("\n")]
