"""What happens during a run, as values: each screen (live, plain, JSON) shows the same ones in its own way."""

from msgspec import Struct


class Happening(Struct, frozen=True, tag_field="event", tag=str.lower):
    pass


class Log(Happening, frozen=True):
    task: str
    text: str


class Skipped(Happening, frozen=True):
    """Lines that came too fast to be shown; the log file has them."""

    task: str
    lines: int


class Started(Happening, frozen=True):
    task: str
    start: int
    log: str


class Ended(Happening, frozen=True):
    task: str
    code: int
    reason: str
    cpu: float = 0.0
    """Seconds."""
    peak: int = 0
    """Bytes."""
    stopped: str = ""
    """Why it was asked to stop; empty if it ended by itself."""


class Metric(Happening, frozen=True, kw_only=True):
    task: str
    values: dict[str, float]
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    epochs: int | None = None


class Phase(Happening, frozen=True):
    """The job's state has changed."""

    phase: str
    message: str


class Over(Happening, frozen=True):
    """The last of all, however the run went."""

    phase: str
    code: int
    """What tfyard exits with."""
    message: str
    directory: str


class Counts(Happening, frozen=True):
    """Role -> how its tasks stand: `3/4`, and restarts."""

    ready: dict[str, str]
    restarts: dict[str, int]


class Usage(Happening, frozen=True):
    """Task -> (CPUs in use, bytes of memory)."""

    tasks: dict[str, tuple[float, int]]


class Note(Happening, frozen=True):
    level: str
    text: str
