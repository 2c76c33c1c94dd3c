"""Run directories: `.tfyard/runs/<job>-<time>/`, with everything about a run.

job.yaml         the job as it ran          decisions.jsonl  every decision that changed something
status.json      its status                 metrics.jsonl    metrics, of logs and summaries
run.json         when, how it ended         logs/            one file per start of a container, and when it grew
asked.json       with which options         work/            what containers without a working directory wrote
control          a socket, while it runs    source/          programs of notebook cells
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec
from msgspec.structs import replace

from tfyard.errors import TfyardError, Usage
from tfyard.model import Job, Status
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.run_record import PREPARING, RunRecord
from tfyard.node import SCRATCH, WORK

HOME = Path(os.environ.get("TFYARD_HOME") or ".tfyard")
"""Folder of runs and volumes; TFYARD_HOME is for working directories that cannot be written to."""
STATUS = "status.json"
SWEEPS = "sweeps"
"""Folder of sweeps; each has a folder of its own in it."""
RESERVE = 4096
"""Bytes that a record may grow by until the end of its run."""
RESERVE_PER_TASK = 64
OLD = 60.0
"""Seconds after which a directory without a lock and a record is a leftover, not one that is being made."""
KEEP, KEEP_VARIABLE = 100, "TFYARD_KEEP_RUNS"
"""Number of ended runs that are kept, and the variable that overrides it."""


class RunDirectory:
    """The files of one run. A full disk must not end the training: a write that fails is reported once."""

    def __init__(self, path: Path, warn: Callable[[str], None] = lambda _text: None) -> None:
        self.path, self._warn = path, warn
        self.problem = ""
        """Why something could not be written, if so."""
        self._lock: int | None = None
        """Lock during the run; the kernel releases it however this process ends."""

    @classmethod
    def make(cls, home: Path, job: Job, now: datetime, warn: Callable[[str], None]) -> "RunDirectory":
        try:
            made = cls(_new(home, f"{job.name}-{now.astimezone():%Y%m%d-%H%M%S}"), warn)
        except OSError as error:
            fix = "set TFYARD_HOME to a folder that can be written to, or run from another folder"
            raise TfyardError(f"{error.filename or home}: {error.strerror}; {fix}") from None
        made._lock = lock(made.path)
        return made

    def close(self) -> None:
        """Removes temporary files after the end of the run, and releases the lock."""
        _remove(self.path / SCRATCH)
        _remove_empty(self.work)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def discard(self) -> None:
        """Removes the directory of a run that did not start."""
        rmtree(self.path, ignore_errors=True)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def work(self) -> Path:
        """Folder for tasks without a working directory; it may not exist."""
        return self.path / WORK

    @property
    def source(self) -> Path:
        """Folder of programs that are in no file of the user; it may not exist."""
        return self.path / "source"

    def write(self, file: str, text: str, *, private: bool = False) -> None:
        """Writes a file; `private`: only the user may read it."""
        self.attempt(lambda: replace_file(self.path / file, text, 0o600 if private else 0o666))

    def append(self, file: str, *rows: dict[str, Any]) -> None:
        if rows:
            self.attempt(lambda: _append(self.path / file, msgspec.json.Encoder().encode_lines(rows)))

    def rows(self, file: str) -> list[dict[str, Any]]:
        """The appended rows, without a row that was cut when tfyard was killed."""
        try:
            lines = (self.path / file).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [row for line in lines if (row := _row(line)) is not None]

    def record(self, record: RunRecord) -> None:
        """Writes the record; during the run, with room for its end: if the disk is full by then, the file is
        overwritten in place."""
        record = replace(record, is_locked=self._lock is not None)
        text = msgspec.json.format(msgspec.json.encode(record)).decode()
        room = 0 if record.ended else RESERVE + RESERVE_PER_TASK * len(record.tasks)
        path = self.path / "run.json"
        self.attempt(lambda: replace_file(path, text + " " * room), lambda: _overwrite(path, text))

    def write_status(self, status: Status) -> None:
        self.write(STATUS, msgspec.json.format(msgspec.json.encode(status)).decode())

    def status(self) -> Status:
        """The status; empty before the first decision of the run."""
        try:
            return msgspec.json.decode((self.path / STATUS).read_bytes(), type=Status)
        except (FileNotFoundError, *CORRUPT_JSON):
            return Status()

    def touch(self) -> None:
        """Notes that the run is alive: if it is killed, this counts as the time of its end."""
        with suppress(OSError):
            os.utime(self.path / "run.json")

    def load(self) -> RunRecord | None:
        """The record; None if it is not a run, or one that ended before its record was written."""
        try:
            record = msgspec.json.decode((self.path / "run.json").read_bytes(), type=RunRecord)
            return record if record.ended or self._is_running(record) else self._killed(record)
        except (FileNotFoundError, NotADirectoryError, *CORRUPT_JSON):
            return None

    @property
    def is_corrupt(self) -> bool:
        """Whether there is a record, and it cannot be read."""
        return self.load() is None and (self.path / "run.json").exists()

    def _is_running(self, record: RunRecord) -> bool:
        """Whether the run goes on, by its lock: a process id may be reused, or be of another PID namespace. It is
        used only where there are no locks."""
        return is_locked(self.path) if record.is_locked else _is_alive(record.pid)

    def _killed(self, record: RunRecord) -> RunRecord:
        """The record of a run whose tfyard was killed before it recorded the end, which was at the last write."""
        last = max(map(_changed, (self.path, *self.path.iterdir(), *self.logs())))
        ends = ("Running", PREPARING)
        tasks = (replace(t, outcome="Killed") if t.outcome in ends else t for t in record.tasks)
        return replace(record, phase="Killed", ended=datetime.fromtimestamp(last, UTC), tasks=tuple(tasks))

    def logs(self, task: str | None = None) -> list[Path]:
        files = sorted((self.path / "logs").glob("*.log"), key=_log_key)
        return [log for log in files if task is None or log.name.startswith(f"{task}.")]

    def attempt(self, write: Callable[[], object], instead: Callable[[], None] = lambda: None) -> None:
        try:
            write()
        except OSError as error:
            with suppress(OSError):
                instead()
            if not self.problem:
                self.problem = f"cannot write to {self.path}: {error.strerror}"
                self._warn(f"{self.problem}; the run continues, but its logs and its record are incomplete")


def _new(home: Path, stem: str) -> Path:
    """Makes the directory of a new run."""
    runs, ignore = home / "runs", home / ".gitignore"
    runs.mkdir(parents=True, exist_ok=True)
    if not ignore.exists():
        ignore.write_text("*\n")
    for name in [stem, *(f"{stem}-{number}" for number in range(2, 1000))]:
        try:
            (runs / name).mkdir()
        except FileExistsError:
            continue
        (runs / name / "logs").mkdir()
        return runs / name
    raise Usage(f"too many runs named {stem}")


def all_runs(home: Path = HOME) -> Iterator[RunDirectory]:
    """All runs, the newest first. Other commands may be removing some of them meanwhile."""
    runs = home / "runs"
    dated = [(_changed(path), path) for path in (runs.iterdir() if runs.is_dir() else ())]
    for _, path in sorted(dated, reverse=True):
        if path.is_dir():
            yield RunDirectory(path)


def _changed(path: Path) -> float:
    """Time of the last write; 0 if it is gone: the supervisor of a killed run removes temporary files."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it exists, and belongs to another user
    return pid > 0


def sweep(now: datetime, home: Path = HOME) -> list[tuple[RunDirectory, RunRecord | None]]:
    """Removes the runs whose time to live (keepFor, ttlSecondsAfterFinished) is over; returns the others, the
    newest first, with their records: each is read once."""
    sweep_scratch(home)
    kept = []
    for run in all_runs(home):
        record = run.load()
        if record is None:
            _sweep_empty(run.path, now)
        elif record.expires is not None and record.expires <= now:
            _remove_run(run.path)
            continue
        kept.append((run, record))
    return kept


def prune(keep: int | None, home: Path = HOME) -> list[str]:
    """Removes the oldest of the ended runs, if there are more than `keep`; returns their names. Trials stay
    as long as their sweep."""
    records = [
        (run, record)
        for run in all_runs(home)
        if (record := run.load()) is not None and record.ended and not _is_kept_by_sweep(record, home)
    ]
    if keep is None or len(records) <= keep:
        return []
    records.sort(key=lambda each: each[1].started, reverse=True)
    for run, _ in records[keep:]:
        _remove_run(run.path)
    return [run.name for run, _ in records[keep:]]


def _is_kept_by_sweep(record: RunRecord, home: Path) -> bool:
    return record.trial is not None and (home / SWEEPS / record.trial.sweep).is_dir()


def _sweep_empty(path: Path, now: datetime) -> None:
    """Removes the leftovers of a run that was killed while its code was fetched, or whose disk was full."""
    is_old = _changed(path) < now.timestamp() - OLD
    if (
        not is_old
        or (path / "run.json").exists()
        or any(log.stat().st_size for log in path.glob("logs/*.log"))
    ):
        return
    locked = lock(path)
    if locked is not None:
        _remove_run(path)
        os.close(locked)


def _remove_run(path: Path) -> None:
    """Removes a run; another command may be doing the same."""
    with suppress(FileNotFoundError):
        rmtree(path)


def kept() -> int | None:
    """Number of runs that are kept after their end; None: all."""
    text = os.environ.get(KEEP_VARIABLE) or str(KEEP)
    if text == "all":
        return None
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise Usage(f"{KEEP_VARIABLE}={text}: must be a number from 1, or all")
    return int(text)


def sweep_scratch(home: Path = HOME) -> None:
    """Removes temporary files of runs that were killed together with their supervisor: they may hold Secrets."""
    for scratch in home.glob(f"runs/*/{SCRATCH}"):
        try:
            locked = lock(scratch.parent)
        except FileNotFoundError:
            continue  # another command was faster
        if locked is not None:
            _remove(scratch)
            os.close(locked)


def lock(path: Path) -> int | None:
    """Takes the lock; None if another process has it, or if this file system has no locks. A process id would not
    do: the process may be in another PID namespace, and its id may be reused."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        return None
    return directory


def is_locked(path: Path) -> bool:
    """Whether another process, or another part of this one, has the lock."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False  # it is being removed
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two checks do not block each other
    except BlockingIOError:
        return True
    finally:
        os.close(directory)
    return False


def replace_file(path: Path, text: str, mode: int = 0o666) -> None:
    """Writes a file atomically: readers never see half of it, nor does a crash leave that."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.touch(mode)
        new.write_bytes(text.encode())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _append(path: Path, data: bytes) -> None:
    """Appends all of the data or nothing, also if the disk gets full."""
    with path.open("ab", buffering=0) as file:
        size = file.tell()
        if file.write(data) < len(data):
            file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except CORRUPT_JSON:
        return None


def _overwrite(path: Path, text: str) -> None:
    """Writes into the space that the file has already."""
    data = text.encode()
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if len(data) <= size:
            file.write(data.ljust(size))


def _log_key(path: Path) -> tuple[str, int]:
    stem, _, start = path.name.removesuffix(".log").rpartition(".")
    return stem, int(start) if start.isdigit() else 0


def _remove(scratch: Path) -> None:
    try:
        scratch.rmdir()
    except FileNotFoundError:
        return  # the supervisor has removed it
    except OSError:  # it is not empty
        rmtree(scratch, ignore_errors=True)


def _remove_empty(directory: Path) -> None:
    """Removes a directory and those in it, if they have no files."""
    for path, _, _ in os.walk(directory, topdown=False):
        with suppress(OSError):
            Path(path).rmdir()
