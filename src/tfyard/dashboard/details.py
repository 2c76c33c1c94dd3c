"""What a page says of one job beyond its row: attempts, cause, metrics, hours, use. Reading it blocks."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.model.summary import JobSummary
from tfyard.overview import attempts, metrics
from tfyard.overview.job_table import state
from tfyard.overview.job_view import JobView
from tfyard.overview.metrics import Point
from tfyard.overview.progress import Progress, total_steps
from tfyard.overview.top import TaskUse
from tfyard.overview.why import Answer, explain
from tfyard.sdk.place import Place

T = TypeVar("T")
FINE = ("Running", "Succeeded")
"""States of jobs in lists whose cause is not asked for."""
OVER = ("Succeeded", "Failed", "Stopped", "Interrupted", "Killed")


class Details(Struct, frozen=True, kw_only=True):
    at: datetime
    took: float
    """Seconds that reading has taken."""
    of: JobSummary
    """The row that they belong to."""
    view: JobView | None = None
    answer: Answer | None = None
    progress: Progress | None = None
    uses: tuple[TaskUse, ...] = ()
    spec: str = ""
    gpu_hours: float | None = None
    cpu_hours: float | None = None
    problems: tuple[str, ...] = ()
    """What could not be read, and why."""
    is_whole: bool = False
    """Whether it is enough for the job's own page."""


def is_over(job: JobSummary) -> bool:
    return job.status.is_finished or state(job) in OVER


def read(place: Place, job: JobSummary, *, whole: bool) -> Details:
    """`whole`: all that the job's own page shows; otherwise what a list needs, which costs fewer requests."""
    started, now, problems = time.monotonic(), datetime.now(UTC), list[str]()

    def asked(question: Callable[[], T], default: T) -> T:
        try:
            return question()
        except (TfyardError, OSError) as problem:  # OSError: the folder of a run was removed meanwhile
            problems.append(str(problem))
            return default

    view = asked(place.view, None)
    points = asked(lambda: place.points(()), list[Point]())
    found = view.job if view else None
    needs_why = whole or state(job) not in FINE
    meter = asked(place.meter, None) if whole and not is_over(job) else None
    uses = asked(meter.tasks, list[TaskUse]()) if meter else []
    if meter and meter.problem:
        problems.append(meter.problem)
    return Details(
        at=now,
        took=time.monotonic() - started,
        of=job,
        view=view,
        answer=asked(lambda: explain(place.evidence(), now), None) if needs_why else None,
        progress=metrics.progress(points, total_steps(found) if found else None),
        uses=tuple(uses),
        spec=asked(place.spec, "") if whole else "",
        gpu_hours=attempts.gpu_hours(found, view.attempts, now) if found and view else None,
        cpu_hours=attempts.cpu_hours(found, view.attempts, now) if found and view else None,
        problems=tuple(dict.fromkeys(problems)),
        is_whole=whole,
    )
