"""The events of a run as values: every interface (terminal, plain lines, JSON) shows the same events."""

from msgspec import Struct


class RunEvent(Struct, frozen=True, tag_field="event", tag=str.lower):
    pass


class Log(RunEvent, frozen=True):
    """One or more complete lines of a task's log, without the last line break."""

    task: str
    text: str


class Unfinished(RunEvent, frozen=True):
    """The latest state of a line that has no end yet, such as a progress bar; its final state is a `Log`."""

    task: str
    text: str
    is_rewritten: bool = False
    """Whether it is a new state of the line, as of a progress bar; else it may be a question."""


class Skipped(RunEvent, frozen=True):
    """Number of lines that were written too fast for the screen; the log file has them."""

    task: str
    lines: int


class Started(RunEvent, frozen=True):
    task: str
    start: int
    log: str


class Ended(RunEvent, frozen=True):
    task: str
    code: int
    reason: str
    cpu: float = 0.0
    """CPU time in seconds."""
    peak: int = 0
    """Peak memory in bytes."""
    stopped: str = ""
    """Why the task was asked to stop; empty if it ended by itself."""


class Metric(RunEvent, frozen=True, kw_only=True):
    task: str
    values: dict[str, float]
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    """Number of the epoch; if it is known, `step` and `total` count within this epoch."""
    epochs: int | None = None
    unfinished: bool = False
    """The values come from a progress bar that is still being drawn; its final state comes as another metric."""


class Phase(RunEvent, frozen=True):
    """The job's state has changed."""

    phase: str
    message: str


class Over(RunEvent, frozen=True):
    """The last event of every run."""

    phase: str
    code: int
    """Exit code of tfyard."""
    message: str
    directory: str


class Counts(RunEvent, frozen=True):
    """Role -> how many of its tasks are ready, such as `3/4`, and role -> number of restarts."""

    ready: dict[str, str]
    restarts: dict[str, int]


class ResourceUsage(RunEvent, frozen=True, tag="usage"):
    """Task -> (CPUs in use, bytes of memory)."""

    tasks: dict[str, tuple[float, int]]


class Note(RunEvent, frozen=True):
    level: str
    text: str
