"""The protocols for questions and actions about jobs, on a cluster (`on_cluster.py`) and on this machine
(`on_machine.py`). `Place` is one job, `Jobs` are many. `Run`, the commands of the terminal and completions use
only these two protocols, and never check where a job is.

Questions and actions are plain calls: a command that prints once should load neither asyncio nor aiohttp.
Following logs, ports and pages are coroutines: one thread can follow many jobs. `threads.py` runs coroutines for
synchronous callers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.model.callbacks import Contact, Say

if TYPE_CHECKING:
    from pathlib import Path

    from tfyard.file_trees import Copied, CopyProgress
    from tfyard.logs.lines import LogEvent, LogSelection
    from tfyard.model import Manifest
    from tfyard.model.summary import JobSummary
    from tfyard.model.sweep import SweepState
    from tfyard.overview.evidence import Evidence
    from tfyard.overview.job_record import JobRecord
    from tfyard.overview.job_view import JobView, ToldEvent
    from tfyard.overview.metrics import Point
    from tfyard.overview.top import TaskUse
    from tfyard.overview.waiting import WaitResult
    from tfyard.sdk.forwarding import Port
    from tfyard.sdk.pages import LocalSide, Page, Ports


# --- parameters


class RerunOptions(Struct, frozen=True, kw_only=True):
    """Changes of a rerun, as options of the terminal."""

    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    name: str | None = None
    is_exact: bool = False
    """Whether to take the recorded commit and diff, or the recorded images."""
    is_best: bool = False
    """Whether to run the best trial of a sweep."""


class HelperOptions(Struct, frozen=True, kw_only=True):
    """Settings of the pod that reads a claim, where one is needed; empty: those of the job."""

    image: str = ""
    user: int | None = None


class Copy(Struct, frozen=True, kw_only=True):
    """A copy between a path of this machine and a path as the tasks of the job see it."""

    here: Path
    path: str
    task: str = ""
    """Task of the path; empty: any task that has it."""
    is_code: bool = False
    """Copy the code that the job was submitted with, instead of a path."""
    is_upload: bool = False
    into: bool = False
    """The destination is a folder; the copy keeps its name in it."""
    helper: HelperOptions = HelperOptions()


class TaskCommand(Struct, frozen=True, kw_only=True):
    """A command in a task. `stdin` and `tty` are only for `exec_here`."""

    argv: tuple[str, ...]
    container: str = ""
    """Name of the container; empty: the one that trains."""
    stdin: bool = False
    tty: bool = False


class NotebookOptions(Struct, frozen=True, kw_only=True):
    image: str
    password: str = ""
    """Empty: a password is generated and returned with the page."""
    user: int | None = None


# --- results


class SpecText(Struct, frozen=True):
    """One form of a job, as YAML; comments at its beginning say where it comes from."""

    form: Literal["given", "rendered", "applied"]
    text: str


class Executed(Struct, frozen=True):
    """How a command in a task ended, and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


class CommandOutput(Struct, frozen=True):
    """What a command in a task wrote. `stream`: 1 is standard output, 2 standard error."""

    task: str
    stream: int
    data: bytes


class CommandEnded(Struct, frozen=True):
    """A command in a task has ended, or could not be run; `problem` is NotRunning or an error of the cluster."""

    task: str
    code: int
    problem: TfyardError | None = None


class Done(Struct, frozen=True, kw_only=True):
    """An action that was performed; it cannot be undone."""

    text: str = ""
    """What was done, as a sentence; empty if it is known only after the wait."""
    wait: Callable[[Say, float], Iterator[str]] = lambda *_: iter(())
    """Waits for the effect, at most these seconds: reports what it waits for, and yields the results."""
    goes_on: str = ""
    """What continues if the caller stops waiting."""
    is_waited_for: bool = False
    """The caller must wait."""
    made: Callable[[], Place] | None = None
    """Finds the new job, if the action made one."""


class Intent(Struct, frozen=True, kw_only=True):
    """What an action would do, to be shown and confirmed. An action that is not possible raises instead."""

    name: str
    title: str
    """Name of the job for users: tfjob.kubeflow.org/mnist, or the name of a run."""
    heading: str
    """The action, in words."""
    goes: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Further remarks."""
    compare: Callable[[], tuple[str, str]] | None = None
    """The specs of the job before and after, as YAML, if the action changes it or makes a new one."""
    perform: Callable[[], Done] | None = None
    """None: nothing needs to be done, and `notes` say why."""
    foreground: Callable[[Foreground], int] | None = None
    """Runs it in the foreground of a terminal, instead of `perform`; the result is an exit code."""


class Foreground(Protocol):
    """A terminal that shows what runs in this process. Each method prepares something, and runs it to its end."""

    def run(self, prepare: Callable[[], Any], /) -> int:
        """A run: `prepare` gives a PreparedRun."""

    def drive(self, prepare: Callable[[], Any], /) -> int:
        """A sweep: `prepare` gives a Drive."""


class Meter(Protocol):
    """Measures the resources that the tasks of a job use, at each call."""

    problem: str
    """Why some values are unknown."""

    def tasks(self) -> list[TaskUse]: ...


# --- one job


class Place(Protocol):
    name: str
    title: str
    """Name that `get -o name` prints and every command accepts."""
    namespace: str
    """Namespace of the job; empty on this machine."""
    where: str
    """Where the job is, in words: `on this machine`, or `in the namespace ml`."""
    events_kept: str
    """For how long events are kept, as a sentence; empty: for ever."""
    rendered_as: tuple[str, ...]
    """Forms of `tfyard render` that show more than the job itself, the preferred one first."""

    @property
    def folder(self) -> Path | None:
        """The folder of the record of a run or sweep; None: it is stored in a cluster."""

    def summary(self) -> JobSummary: ...

    def row(self) -> Listed:
        """The job as a row of a list."""

    def sweep(self) -> SweepState | None:
        """The state of a sweep; None: it is a job."""

    def trials(self) -> list[Place]:
        """The jobs of the trials of a sweep that have one, the best first. Raises NotPossible for a job."""

    def manifest(self) -> Manifest: ...

    def specs(self) -> list[SpecText]:
        """The job as it was given and as it is applied."""

    def code(self, helper: HelperOptions, /) -> list[str]:
        """Lines that say where the code of the job is and which files it has."""

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        """The state now and after each change, until `deadline` on the monotonic clock; None: the job was deleted.
        A run on this machine is reported as ended when all its processes have ended."""

    def tasks(self) -> list[str]: ...

    def require_running(self, task: str) -> None:
        """Raise NotRunning, with the reason, if the task has no running program now."""

    def logs(self, wanted: LogSelection) -> Iterator[LogEvent]:
        """The logs until now."""

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        """The metrics of these tasks and roles; none: of the leading tasks."""

    def meter(self) -> Meter: ...

    def evidence(self) -> Evidence: ...

    def view(self) -> JobView: ...

    def events(self) -> list[ToldEvent]:
        """The events of the job and its pods, oldest first."""

    # --- its record

    def job_record(self) -> JobRecord:
        """What was run and how it went, without the metrics, which `points` tell."""

    def submitter(self) -> str:
        """The user who submitted or started it, as their client has recorded; empty: that is not known."""

    def previous(self) -> Place | None:
        """The job before this one that has the same name, or of which this one is a rerun; None: there is none."""

    def missing_permissions(self) -> dict[str, str]:
        """Action, such as `stop` -> the permission that the user lacks for it, and how it is granted."""

    # --- actions

    def stop(self) -> Intent: ...

    def resume(self) -> Intent:
        """Continue a stopped job; on this machine, as a new run."""

    def restart(self, words: tuple[str, ...]) -> Intent:
        """Restart tasks. `words`: tasks and roles; none: all tasks."""

    def scale(self, counts: dict[str, int], /) -> Intent: ...

    def rerun(self, changes: RerunOptions) -> Intent: ...

    def delete(self) -> Intent: ...

    def copy(self, copy: Copy, progress: CopyProgress) -> Copied: ...

    # --- streams

    def follow(self, wanted: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
        """The logs as they are written, until the job has ended; the last item says how. None: nothing new now."""

    def exec_here(self, task: str, command: TaskCommand) -> int:
        """Run a command with the standard streams and the terminal of this process; returns its exit code."""

    def exec(self, tasks: Sequence[str], command: TaskCommand) -> AsyncIterator[CommandOutput | CommandEnded]:
        """Run a command in all these tasks at once, without input."""

    def stacks(self, tasks: Sequence[str]) -> AsyncIterator[CommandOutput | CommandEnded]:
        """Run the script `render/scripts/stacks.py` beside the programs of these tasks; stacks.py reads what it
        prints."""

    def port_forward(
        self, words: Sequence[str], ports: Sequence[Port], /
    ) -> AbstractAsyncContextManager[Ports]:
        """Forward local ports to a task. `words` name the task; none: the only one."""

    def tensorboard(
        self, others: Sequence[Place], log_dir: str, helper: HelperOptions, here: LocalSide, /
    ) -> AbstractAsyncContextManager[list[Page]]:
        """TensorBoard for the summaries of this job and of `others`. Raises NotPossible if one of these is in
        another kind of place."""

    def notebook(self, wanted: NotebookOptions, here: LocalSide, /) -> AbstractAsyncContextManager[Page]: ...


# --- many jobs


class Listed(Struct, frozen=True):
    """A job in a list."""

    title: str
    job: JobSummary
    is_over: bool
    sweep: SweepState | None = None
    """The state of a sweep; None: it is a job."""
    actions: tuple[str, ...] = ()
    """What can be done to it in this state: stop, resume, ..., and the pages tensorboard and notebook."""

    def deleted(self) -> Listed:
        return replace(self, job=self.job.deleted())


def silent(_text: str) -> None:
    """The contact of callers that do not show how current the jobs are."""


class Jobs(Protocol):
    """Many jobs: the runs of a folder, or the TFJobs of one or all namespaces; also those that have ended."""

    def rows(self) -> list[Listed]:
        """The jobs, sorted by namespace and name."""

    def places(self) -> list[Place]:
        """The place of each job, in the order of `rows`."""

    def running(self) -> list[Place]:
        """The places of jobs that have not ended."""

    def watch(self, contact: Contact = silent, /) -> Iterator[list[Listed]]:
        """Yield all jobs, then those that have changed; deleted ones have the phase Deleted. The iterator blocks:
        it needs one thread for all jobs."""

    def nothing(self) -> str:
        """The message if there are no jobs."""
