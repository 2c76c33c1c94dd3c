"""What a page says of one job beyond its row: attempts, cause, metrics, hours, use. Reading it blocks."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from msgspec import Struct

from tfyard.dashboard import job_specs
from tfyard.errors import TfyardError
from tfyard.model.summary import JobSummary
from tfyard.overview import attempts, metrics, queue_place
from tfyard.overview.job_table import CUT_OFF, state
from tfyard.overview.job_view import JobView
from tfyard.overview.metrics import Point
from tfyard.overview.progress import Progress, total_steps
from tfyard.overview.queue_place import QueuePlace
from tfyard.overview.top import TaskUse
from tfyard.overview.why import Answer, explain
from tfyard.sdk.place import Listed, Place, SpecText

T = TypeVar("T")
Ask = Callable[[Callable[[], Any], Any], Any]
"""Asks a question; the second argument is the answer if it cannot be answered, which is noted."""
RECORDED = timedelta(minutes=1)
"""Time after which a job without a record is taken to have none."""
FINE = ("Running", "Succeeded")
"""States of jobs in lists whose cause is not asked for."""
OVER = ("Succeeded", "Failed", *CUT_OFF)


class Details(Struct, frozen=True, kw_only=True):
    at: datetime
    took: float
    """Seconds that reading the details has taken."""
    row: Listed
    """The row of the job when they were read."""
    view: JobView | None = None
    answer: Answer | None = None
    progress: Progress | None = None
    uses: tuple[TaskUse, ...] = ()
    specs: tuple[SpecText, ...] = ()
    queue: QueuePlace | None = None
    """None: the job waits in no queue."""
    owner: str = ""
    gpu_hours: float | None = None
    cpu_hours: float | None = None
    problems: tuple[str, ...] = ()
    """What could not be read, and why."""
    is_whole: bool = False
    """Whether the details are complete, as the job's own page needs them."""


def is_over(job: JobSummary) -> bool:
    return job.status.is_finished or state(job) in OVER


def read(place: Place, row: Listed, known: Details | None, *, whole: bool) -> Details:
    """`whole`: all that the job's own page shows; otherwise what a list needs, which costs fewer requests.
    `known`: what was read before, of which some does not change."""
    started, now, problems, job = time.monotonic(), datetime.now(UTC), list[str](), row.job
    if row.sweep is not None:  # the row has all of it
        return Details(at=now, took=0.0, row=row, is_whole=True)

    def ask(question: Callable[[], T], default: T) -> T:
        try:
            return question()
        except (TfyardError, OSError) as problem:  # OSError: the folder of a run was removed meanwhile
            problems.append(str(problem))
            return default

    view = ask(place.view, None)
    points = ask(lambda: place.points(()), list[Point]())
    found = view.job if view else None
    evidence = ask(place.evidence, None) if whole or state(job) not in FINE else None
    meter = ask(place.meter, None) if whole and not is_over(job) else None
    uses = ask(meter.tasks, list[TaskUse]()) if meter else []
    if meter and meter.problem:
        problems.append(meter.problem)
    return Details(
        at=now,
        took=time.monotonic() - started,
        row=row,
        view=view,
        answer=explain(evidence, now) if evidence else None,
        progress=metrics.progress(points, total_steps(found) if found else None),
        uses=tuple(uses),
        specs=_specs(place, view, known, ask) if whole else (),
        queue=queue_place.of_job(evidence) if evidence else None,
        owner=_owner(place, job, known, ask),
        gpu_hours=attempts.gpu_hours(found, view.attempts, now) if found and view else None,
        cpu_hours=attempts.cpu_hours(found, view.attempts, now) if found and view else None,
        problems=tuple(dict.fromkeys(problems)),
        is_whole=whole,
    )


def _specs(place: Place, view: JobView | None, known: Details | None, ask: Ask) -> tuple[SpecText, ...]:
    """The forms of the job, which are read again only if it has changed."""
    if known and known.specs and known.view and view and view.job and known.view.job == view.job:
        return known.specs
    texts: list[SpecText] = ask(place.specs, [])
    return job_specs.with_rendered(texts, view.job if view else None, place.rendered_as)


def _owner(place: Place, job: JobSummary, known: Details | None, ask: Ask) -> str:
    """The submitter. The record of a job never changes, but is written a moment after the job."""
    is_same = known is not None and known.row.job.created == job.created
    if known and is_same and (known.owner or known.at - job.created > RECORDED):
        return known.owner
    return str(ask(place.submitter, ""))
