"""Where a job is: what is asked of it and done to it, on a cluster (`on_cluster.py`) and on this machine
(`on_machine.py`). This is the one protocol that both have; `Run` and the commands of the terminal ask by it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tfyard.file_trees import Copied
from tfyard.model.summary import JobSummary
from tfyard.overview.evidence import Evidence
from tfyard.overview.job_view import JobView, ToldEvent
from tfyard.overview.log_lines import LogEvent, Wanted
from tfyard.overview.metrics import Point


class Changes(Struct, frozen=True, kw_only=True):
    """In what a rerun differs, as the terminal is told."""

    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    name: str | None = None


class Executed(Struct, frozen=True):
    """How a command in a task ended, and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


class Place(Protocol):
    name: str
    namespace: str
    """Empty on this machine."""

    def summary(self) -> JobSummary: ...

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        """Now and after each change, until `deadline` on the monotonic clock; None: it was deleted. When it says
        that the job is over, nothing of a run on this machine is left."""

    def exit_code(self) -> int | None:
        """Of a run that knows its own."""

    def tasks(self) -> list[str]: ...

    def logs(self, wanted: Wanted, *, follow: bool) -> Iterator[LogEvent | None]:
        """None whenever nothing is new."""

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        """Of these tasks, or of those that lead."""

    def evidence(self) -> Evidence: ...

    def view(self) -> JobView: ...

    def events(self) -> list[ToldEvent]:
        """Of the job and its pods, oldest first."""

    def stop(self) -> None: ...

    def resume(self) -> "Place":
        """On this machine, what goes on is a new run."""

    def restart(self, words: tuple[str, ...]) -> None:
        """Tasks and roles; none: all tasks."""

    def scale(self, counts: dict[str, int]) -> None: ...

    def rerun(self, changes: Changes) -> "Place": ...

    def delete(self) -> None: ...

    def get(self, path: str, to: Path) -> Copied: ...

    # --- what reaches into it

    def exec(self, task: str, argv: tuple[str, ...]) -> Executed: ...

    def tensorboard(self, log_dir: str) -> AbstractContextManager[str]:
        """Its address."""

    def port_forward(self, task: str, port: int) -> AbstractContextManager[str]:
        """An address here: host:port."""
