"""What we and the process that reports tell each other, and what it keeps in the directory of a run."""

from pathlib import Path

import msgspec
from msgspec import Struct

from tfyard.model.corrupt_json import CORRUPT_JSON

KEPT = "mlflow.json"


class TrackingOrder(Struct, frozen=True, kw_only=True):
    """The first line of the process's input."""

    uri: str
    """Address of the server, without credentials."""
    job: str
    """Name of the experiment."""
    name: str
    """Name of the run."""
    deciding: str
    """The task whose metrics keep their names."""
    started: float
    """Seconds since 1970."""
    feed: int = -1
    """Descriptor of the file with the metrics: rows as in metrics.jsonl."""
    parameters: dict[str, str] = {}
    tags: dict[str, str] = {}
    run: str = ""
    """Id of the run to go on in; empty: a new one."""
    directory: str = ""
    """Directory of a run on this machine, which keeps what is still to be reported; empty: none."""
    record: str = ""
    """The file with the record of the run, once that is written: it says which code it is; empty: none."""
    at_loss: str = ""
    """Phase of the job if this process is gone without having told one; empty: the job goes on without it."""


class TrackingEnd(Struct, frozen=True):
    """The last line of its input."""

    phase: str
    tags: dict[str, str] = {}
    at: float = 0.0
    """When the job ended, in seconds since 1970; 0: now."""


class TrackingAnswer(Struct, frozen=True, omit_defaults=True):
    """A line of its output."""

    run: str = ""
    """Id of the run, once it is known."""
    page: str = ""
    """Address of the run's page."""
    problem: str = ""
    is_over: bool = False
    """Whether the server has everything."""


class TrackedRun(Struct, frozen=True, kw_only=True):
    """How far a run is reported: its directory keeps that, so that a later run can report what is missing."""

    order: TrackingOrder
    run: str = ""
    """Id of the run at the server; empty: it is not known yet."""
    mark: str = ""
    """Tag of the run, by which it is found if the server has made it and its answer was lost."""
    creations: int = 0
    """How often the server was asked to make the run."""
    has_code: bool = False
    """Whether the server knows which code it is."""
    sent: int = 0
    """Bytes of metrics.jsonl that were reported."""
    is_over: bool = False


def kept(directory: Path) -> TrackedRun | None:
    try:
        return msgspec.json.decode((directory / KEPT).read_bytes(), type=TrackedRun)
    except (OSError, *CORRUPT_JSON):
        return None
