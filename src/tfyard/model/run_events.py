"""The events of a run, as values: each interface (terminal, plain lines, JSON) shows the same ones its own way."""

from msgspec import Struct


class RunEvent(Struct, frozen=True, tag_field="event", tag=str.lower):
    pass


class Log(RunEvent, frozen=True):
    """One or more whole lines, as they were read: as text without the last line break."""

    task: str
    text: str


class Unfinished(RunEvent, frozen=True):
    """The latest state of a line that has no end yet, such as a progress bar; `Log` has its final one."""

    task: str
    text: str


class Skipped(RunEvent, frozen=True):
    """Lines that came too fast for a screen; the log file has them."""

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
    """Seconds."""
    peak: int = 0
    """Bytes."""
    stopped: str = ""
    """Why it was asked to stop; empty if it ended by itself."""


class Metric(RunEvent, frozen=True, kw_only=True):
    task: str
    values: dict[str, float]
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    """If it is known, `step` and `total` are those of this epoch."""
    epochs: int | None = None
    unfinished: bool = False
    """Read from a progress bar that goes on; its last state is in a metric that is not."""


class Phase(RunEvent, frozen=True):
    """The job's state has changed."""

    phase: str
    message: str


class Over(RunEvent, frozen=True):
    """The last event, however the run went."""

    phase: str
    code: int
    """What tfyard exits with."""
    message: str
    directory: str


class Counts(RunEvent, frozen=True):
    """Role -> how many of its tasks are ready, such as `3/4`; and how often they were restarted."""

    ready: dict[str, str]
    restarts: dict[str, int]


class ResourceUsage(RunEvent, frozen=True, tag="usage"):
    """Task -> (CPUs in use, bytes of memory)."""

    tasks: dict[str, tuple[float, int]]


class Note(RunEvent, frozen=True):
    level: str
    text: str
