"""The folder of a box: what it was asked for, what it last said about itself, and whether it runs.

A box runs if its process holds a lock, never because of a process id in a file: ids are used again, and
files survive a crash and a reboot. A POSIX record lock belongs to one process and not to its children; the kernel
releases it however that process ends, and names its holder.
"""

import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal, TypeVar

import msgspec
from msgspec import Struct

from tfyard.errors import TfyardError, Usage
from tfyard.formats.metadata import DNS_LABEL
from tfyard.model.names import MAX_LABEL
from tfyard.node import volumes

T = TypeVar("T")

DEFAULT_NAME = "tfyard-dev"
LOG_BYTES = 10 << 20
"""As a kubelet rotates logs; with what is kept of it, each log takes twice as much."""
_FLOCK = "hhqqi"
"""struct flock: type, whence, start, length, process id."""


class Settings(Struct, frozen=True, kw_only=True):
    """What `up` was asked for."""

    name: str = DEFAULT_NAME
    binaries: str = ""
    port: int = 0
    pretend: dict[str, str] = {}
    operator: bool = True
    operator_config: str = ""
    """A file, as `tfyard operator --config` takes it; empty: none."""
    python: str = ""
    entrypoint: dict[str, str] = {}
    """Image -> the command that its containers run, unless they name one."""
    kubeconfig: str = ""
    """The file that the context was merged into; empty: none but the box's own."""
    previous_context: str = ""
    """Which was the current one of that file."""


class State(Struct, frozen=True, kw_only=True):
    """What the box last said about itself."""

    phase: Literal["starting", "ready", "stopping", "failed"]
    message: str = ""
    """What is being started, or why it failed."""
    port: int = 0
    kubernetes: str = ""
    started: datetime | None = None
    notes: list[str] = []
    """What the user should know about this box: what the machine does not allow."""
    restarts: dict[str, int] = {}
    """Of components that ended by themselves."""
    ended: dict[str, str] = {}
    """Components that have ended and do not run again yet -> the last that each said."""

    @property
    def trouble(self) -> str:
        return "; ".join(
            f"{name} has ended, and is started again: {said}" for name, said in self.ended.items()
        )


class BoxFolder(Struct, frozen=True):
    path: Path

    @classmethod
    def of(cls, name: str, environ: Mapping[str, str] = os.environ) -> "BoxFolder":
        if not DNS_LABEL.fullmatch(name) or len(name) > MAX_LABEL:
            raise Usage(f"--name {name}: must be at most {MAX_LABEL} lower-case letters, digits and '-'")
        return cls(boxes(environ) / name)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def data(self) -> Path:
        """All that `down --keep-data` keeps."""
        return self.path / "data"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def log(self) -> Path:
        """Of the box's own process."""
        return self.logs / "box.log"

    # --- what is written in it

    def settings(self) -> Settings:
        return _read(self.path / "settings.json", Settings) or Settings(name=self.name)

    def state(self) -> State | None:
        return _read(self.path / "state.json", State)

    def write(self, value: Settings | State) -> None:
        name = "settings.json" if isinstance(value, Settings) else "state.json"
        new = self.path / f"{name}.new"
        new.write_bytes(msgspec.json.encode(value))
        new.rename(self.path / name)

    def prepare(self, settings: Settings) -> None:
        """For a new box: what an earlier one left behind goes, except for its data."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)  # keys are in it
        self.remove(keep_data=True)
        self.write(settings)

    def remove(self, *, keep_data: bool) -> None:
        """The lock goes last, so that whoever looks meanwhile sees a box that does not run."""
        if not self.path.exists():
            return
        if self._elsewhere.is_dir():  # else whoever should have removed it has done so
            volumes.remove(self._elsewhere.readlink())
        kept = (self.data, self._lock) if keep_data else ()
        for path in sorted(self.path.iterdir(), key=lambda path: path == self._lock):
            if path not in kept:
                _remove(path)
        if not keep_data:
            self.path.rmdir()

    @property
    def _elsewhere(self) -> Path:
        return self.path / "elsewhere"

    def link(self, folder: Path) -> None:
        """The box has a folder outside of this one, and if it is killed it cannot remove that."""
        self._elsewhere.symlink_to(folder)

    def rotate_logs(self) -> None:
        """Of all components. A log that is too long begins again, and its last part is kept beside it."""
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > LOG_BYTES:
                _rotate(log)

    # --- who runs

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    def lock(self) -> bool:
        """By the process of the box itself, until it ends; False if another one has it."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        return True

    def holder(self) -> int | None:
        """The process id of the box; None if it does not run."""
        try:
            with self._lock.open("rb+") as file:
                asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, *_, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except FileNotFoundError:
            return None
        return None if kind == fcntl.F_UNLCK else pid

    @contextmanager
    def exclusively(self, say: Callable[[str], None]) -> Iterator[None]:
        """One command at a time for each box. The file goes with the box; who waited for it then makes another."""
        path = self.path.with_name(f".{self.name}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as problem:
            said = f"{path.parent} cannot be written: {problem.strerror}"
            raise TfyardError(f"{said}; set XDG_STATE_HOME to a folder that can") from None
        while True:
            with path.open("w") as file:
                if not _try_lock(file):
                    say(f"waiting for another command that is starting or ending {self.name}")
                    fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_nlink:
                    try:
                        yield
                    finally:
                        if not self.path.exists():
                            path.unlink()
                    return


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def boxes(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the boxes of this user are, running or not."""
    base = Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "tfyard" / "dev"


def every_box(environ: Mapping[str, str] = os.environ) -> list[BoxFolder]:
    found = boxes(environ)
    names = sorted(found.iterdir()) if found.is_dir() else []
    return [BoxFolder(path) for path in names if path.is_dir()]


def _read(path: Path, kind: type[T]) -> T | None:
    """None if it is missing or was written by another version of tfyard."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _rotate(log: Path) -> None:
    """Its writers have it open to append, so it is copied and truncated. Without room for a copy, nothing is
    kept: what is full must not stay full."""
    kept = log.with_name(f"{log.name}.1")
    with log.open("rb+") as file:
        file.seek(-LOG_BYTES, os.SEEK_END)
        try:
            with kept.open("wb") as copy:
                shutil.copyfileobj(file, copy)
        except OSError:
            kept.unlink(missing_ok=True)
        file.truncate(0)


def _remove(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
    else:
        volumes.remove(path)
