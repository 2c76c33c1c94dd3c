"""Jobs and local runs as rows, by the columns of `kubectl get tfjobs`."""

from datetime import datetime

from tfyard.model import CHIEF, EVALUATOR, MASTER, PS, WORKER
from tfyard.model.summary import JobSummary
from tfyard.overview.wording import age

COLUMNS = ("NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE")
WIDE_COLUMNS = (*COLUMNS, "EVALUATOR", "STARTED", "COMPLETED", "MESSAGE")
NAMESPACE = "NAMESPACE"
LOCAL = "<local>"
"""In the column of namespaces: a run on this machine, which is in none."""


def columns(wide: bool, namespaced: bool) -> tuple[str, ...]:
    names = WIDE_COLUMNS if wide else COLUMNS
    return (NAMESPACE, *names) if namespaced else names


def row(job: JobSummary, now: datetime, wide: bool, namespaced: bool) -> tuple[str, ...]:
    """By `columns`. What is not known is empty, as with kubectl."""
    cells = (*_cells(job, now), *(_more(job, now) if wide else ()))
    return (job.namespace or LOCAL, *cells) if namespaced else cells


def state(job: JobSummary) -> str:
    """Other operators write no phase; their last true condition says the same."""
    found = (each.type for each in reversed(job.status.conditions) if each.status == "True")
    return job.status.phase or next(found, "")


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
    found = job.status.replica_statuses.get(role)
    return found.ready if found else ""


def _since(then: datetime | None, now: datetime) -> str:
    return age((now - then).total_seconds()) if then else ""
