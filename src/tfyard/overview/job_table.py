"""Jobs and local runs as rows, by the columns of `kubectl get tfjobs`."""

from datetime import datetime

from msgspec import Struct

from tfyard.model import CHIEF, EVALUATOR, MASTER, PS, WORKER
from tfyard.model.summary import JobSummary
from tfyard.overview.wording import age

COLUMNS = ("NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE")
WIDE_COLUMNS = (*COLUMNS, "EVALUATOR", "STARTED", "COMPLETED", "MESSAGE")
NAMESPACE = "NAMESPACE"
TRIALS = "TRIALS"
"""Column of sweeps; tables without a sweep do not have it."""
LOCAL = "<local>"
"""Namespace cell of a run on this machine."""


class TableShape(Struct, frozen=True):
    """Selects the columns of a table."""

    is_wide: bool
    has_namespaces: bool
    has_sweeps: bool = False


def columns(shape: TableShape) -> tuple[str, ...]:
    names = WIDE_COLUMNS if shape.is_wide else COLUMNS
    names = (*names, TRIALS) if shape.has_sweeps else names
    return (NAMESPACE, *names) if shape.has_namespaces else names


def row(job: JobSummary, now: datetime, shape: TableShape, trials: str = "") -> tuple[str, ...]:
    """Cells of `columns`. Unknown values are empty, as with kubectl. `trials`: of a sweep, how far they are."""
    cells = (*_cells(job, now), *(_more(job, now) if shape.is_wide else ()))
    cells = (*cells, trials) if shape.has_sweeps else cells
    return (job.namespace or LOCAL, *cells) if shape.has_namespaces else cells


CUT_OFF = ("Stopped", "Interrupted", "Killed")
"""States of runs and sweeps that ended before their time, and can be resumed."""


def state(job: JobSummary) -> str:
    """The phase, or the last true condition, if the operator writes no phase; Pending: there is neither."""
    types = (condition.type for condition in reversed(job.status.conditions) if condition.status == "True")
    return job.status.phase or next(types, "Pending")


def _cells(job: JobSummary, now: datetime) -> tuple[str, ...]:
    status = job.status
    restarts = str(status.restarts) if status.restarts or status.replica_statuses else ""
    roles = (_ready(job, CHIEF) or _ready(job, MASTER), _ready(job, WORKER), _ready(job, PS))
    return (job.name, state(job), *roles, restarts, age((now - job.created).total_seconds()))


def _more(job: JobSummary, now: datetime) -> tuple[str, ...]:
    status = job.status
    message = status.conditions[-1].message if status.conditions else ""
    times = (_since(status.start_time, now), _since(status.completion_time, now))
    return (_ready(job, EVALUATOR), *times, " ".join(message.split()))


def _ready(job: JobSummary, role: str) -> str:
    counts = job.status.replica_statuses.get(role)
    return counts.ready if counts else ""


def _since(then: datetime | None, now: datetime) -> str:
    return age((now - then).total_seconds()) if then else ""
