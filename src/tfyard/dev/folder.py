"""The folder of a cluster: its settings, its last state, and whether its process runs.

A cluster runs if its process holds a lock, never because of a process id in a file: ids are used again, and files
survive a crash and a reboot. A POSIX record lock belongs to one process and not to its children; the kernel
releases it however that process ends, and names its holder.
"""

import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal, TypeVar

import msgspec
from msgspec import Struct

from tfyard.errors import TfyardError, Usage
from tfyard.formats.metadata import DNS_LABEL
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.names import MAX_LABEL
from tfyard.node import volumes

T = TypeVar("T")

DEFAULT_NAME = "tfyard-dev"
LOG_BYTES = 10 << 20
"""Maximum size of a log, as with a kubelet; with the part that is kept beside it, a log takes twice as much."""
_FLOCK = "hhqqi"
"""Format of struct flock: type, whence, start, length, process id."""


class UpOptions(Struct, frozen=True, kw_only=True):
    """Options of `up`."""

    name: str = DEFAULT_NAME
    binaries: str = ""
    port: int = 0
    last_port: int = 0
    """Port of the process before, which kubeconfigs may name; without `port`, it is used again if it is free."""
    pretend: dict[str, str] = {}
    operator: bool = True
    operator_config: str = ""
    """Config file for `tfyard operator --config`; empty: none."""
    python: str = ""
    entrypoint: dict[str, str] = {}
    """Image -> command of its containers that have none."""
    kubeconfig: str = ""
    """File that the context was merged into; empty: only the cluster's own kubeconfig has it."""
    previous_context: str = ""
    """Current context of that file before."""


class ReportedState(Struct, frozen=True, kw_only=True):
    """Last state that the cluster's process reported."""

    phase: Literal["starting", "ready", "stopping", "failed"]
    message: str = ""
    """Component that is being started, or why the start failed."""
    port: int = 0
    kubernetes: str = ""
    started: datetime | None = None
    notes: list[str] = []
    """Restrictions of this machine that the user should know."""
    restarts: dict[str, int] = {}
    """Component -> how often it was restarted after it ended by itself."""
    ended: dict[str, str] = {}
    """Component that has ended and does not run again yet -> the last line of its log."""

    @property
    def trouble(self) -> str:
        return "; ".join(
            f"{name} has ended, and is started again: {line}" for name, line in self.ended.items()
        )


class BoxFolder(Struct, frozen=True):
    path: Path

    @classmethod
    def of(cls, name: str) -> "BoxFolder":
        if not DNS_LABEL.fullmatch(name) or len(name) > MAX_LABEL:
            raise Usage(f"--name {name}: must be at most {MAX_LABEL} lower-case letters, digits and '-'")
        return cls(boxes() / name)

    @property
    def name(self) -> str:
        return self.path.name

    def command(self, verb: str) -> str:
        """A command of `tfyard dev` for this cluster."""
        return f"tfyard dev {verb}{'' if self.name == DEFAULT_NAME else f' --name {self.name}'}"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def data(self) -> Path:
        """Folder that `down --keep-data` keeps."""
        return self.path / "data"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def log(self) -> Path:
        """Log of the cluster's own process."""
        return self.logs / "cluster.log"

    # --- content

    def settings(self) -> UpOptions:
        return _read(self.path / "settings.json", UpOptions) or UpOptions(name=self.name)

    def state(self) -> ReportedState | None:
        return _read(self.path / "state.json", ReportedState)

    def write(self, value: UpOptions | ReportedState) -> None:
        name = "settings.json" if isinstance(value, UpOptions) else "state.json"
        new = self.path / f"{name}.new"
        new.write_bytes(msgspec.json.encode(value))
        new.rename(self.path / name)

    def prepare(self, settings: UpOptions) -> None:
        """Make the folder for a new process; files of an earlier one are removed, except for its data."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)  # keys are in it
        self.remove(keep_data=True)
        self.write(settings)

    def remove(self, *, keep_data: bool) -> None:
        """Remove the files, the lock last: until then, other commands see a cluster that does not run."""
        if not self.path.exists():
            return
        if self._elsewhere.is_dir():  # otherwise the process that made it has removed it
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
        """Remember a folder outside of this one: the cluster's process cannot remove it if it is killed."""
        self._elsewhere.symlink_to(folder)

    def rotate_logs(self) -> None:
        """Rotate logs of components that are too long; the last part of each is kept beside it."""
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > LOG_BYTES:
                _rotate(log)

    # --- locks

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    def lock(self) -> bool:
        """Take the lock for this process, until it ends; False if another process has it."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        return True

    def holder(self) -> int | None:
        """Id of the cluster's process; None if it does not run."""
        try:
            with self._lock.open("rb+") as file:
                query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, *_, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, query))
        except FileNotFoundError:
            return None
        return None if kind == fcntl.F_UNLCK else pid

    @contextmanager
    def exclusively(self, say: Callable[[str], None]) -> Iterator[None]:
        """Allow one command at a time for each cluster. The lock file is removed with the cluster; a command that
        waited for it then makes another one."""
        path = self.path.with_name(f".{self.name}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as problem:
            text = f"{path.parent} cannot be written: {problem.strerror}"
            raise TfyardError(f"{text}; set XDG_STATE_HOME to a folder that can") from None
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


def boxes() -> Path:
    """Folder of all clusters of this user, running or not."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "tfyard" / "dev"


def every_box() -> list[BoxFolder]:
    folder = boxes()
    names = sorted(folder.iterdir()) if folder.is_dir() else []
    return [BoxFolder(path) for path in names if path.is_dir()]


def _read(path: Path, kind: type[T]) -> T | None:
    """Content of a file; None if it is missing or was written by another version of tfyard."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, *CORRUPT_JSON):
        return None


def _rotate(log: Path) -> None:
    """Copy and truncate a log: its writers have it open to append. If the disk is too full for a copy, nothing is
    kept, so that the log does not keep the disk full."""
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
