"""The page Jobs: what is in its address (filter, order, page), and its rows."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from tfyard.dashboard import addresses, charts, drawing, trial_table
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.board import JobsBoard
from tfyard.dashboard.details import Details
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.trial_table import TrialTable
from tfyard.dashboard.viewer import Viewer
from tfyard.model.summary import JobSummary
from tfyard.model.sweep import SweepState
from tfyard.overview import job_table, sweep_text, wording
from tfyard.overview.waiting import failure_line
from tfyard.overview.wording import age, duration, number
from tfyard.sdk.place import Listed

PER_PAGE = 100
SHOWN_TRIALS = 12
"""Trials below the row of a sweep; its page has all of them."""
COLUMNS = {
    "state": "State",
    "tasks": "Tasks",
    "progress": "Progress",
    "loss": "Loss",
    "queue": "Queue",
    "owner": "Owner",
    "restarts": "Restarts",
    "gpu": "GPU-hours",
    "cpu": "CPU-hours",
    "age": "Age",
}
"""Columns that can be hidden; the name is always there."""
LAST = "\uffff"
"""Sorts after every word."""
ORDERS = ("name", "state", "queue", "owner", "restarts", "gpu", "cpu", "age")
KINDS = {
    "running": ("Running", "Stalled"),
    "waiting": (
        "",
        "Pending",
        "Created",
        "Waiting",
        "Blocked",
        "Queued",
        "Restarting",
        "Starting",
    ),
    "succeeded": ("Succeeded",),
    "failed": ("Failed", "Killed"),
    "stopped": ("Stopped", "Interrupted", "Suspended"),
}
"""Filter -> states."""


class JobsQuery(Struct, frozen=True):
    """The part of the address after `?`."""

    state: str = ""
    find: str = ""
    where: str = ""
    sort: str = "age"
    down: bool = False
    hide: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """Keys of the sweeps whose trials are shown below their rows."""
    page: int = 1

    def to(self, **changes: Any) -> str:
        """The address of this view with changes; what is as usual is left out."""
        now = {name: getattr(self, name) for name in self.__struct_fields__} | {"page": 1} | changes
        usual = JobsQuery()
        words = {name: value for name, value in now.items() if value != getattr(usual, name)}
        words |= {name: ",".join(words[name]) for name in ("hide", "open") if name in words}
        if "down" in words:
            words["down"] = "1"
        return f"?{urlencode(words)}" if words else "?"

    def toggled(self, sweep: str) -> str:
        """The address with the trials of this sweep shown, or not any more."""
        others = tuple(key for key in self.open if key != sweep)
        return self.to(open=others if len(others) < len(self.open) else (*self.open, sweep), page=self.page)


def read(query: Mapping[str, str]) -> JobsQuery:
    """Read the query of the address. Unknown words mean the default: the address may be of another version."""
    state, sort, page = query.get("state", ""), query.get("sort", ""), query.get("page", "")
    return JobsQuery(
        state=state if state in KINDS else "",
        find=query.get("find", "").strip(),
        where=query.get("where", ""),
        sort=sort if sort in ORDERS else "age",
        down=query.get("down") == "1",
        hide=tuple(each for each in query.get("hide", "").split(",") if each in COLUMNS),
        open=tuple(filter(None, query.get("open", "").split(","))),
        page=max(1, int(page)) if page.isdecimal() and len(page) < 6 else 1,
    )


class Row(Struct, frozen=True, kw_only=True):
    """A job in words."""

    address: Address
    name: str
    where: str
    state: str
    figure: str
    tasks: str
    progress: str = ""
    left: str = ""
    loss: str = ""
    spark: str = ""
    cause: str = ""
    queue: str = ""
    position: str = ""
    """Position in the queue, in words."""
    owner: str = ""
    restarts: str = ""
    gpu: str = ""
    cpu: str = ""
    age: str = ""
    created: datetime
    is_over: bool = False
    is_sweep: bool = False
    trials: TrialTable | None = None
    """The trials of a sweep that is opened."""


def row(listed: Listed, details: Details | None, now: datetime, *, is_open: bool = False) -> Row:
    if listed.sweep is not None:
        return _of_sweep(listed, listed.sweep, now, is_open=is_open)
    job, state = listed.job, job_table.state(listed.job)
    progress = details.progress if details else None
    has_step = progress is not None and progress.step is not None
    runs = state == "Running"
    return Row(
        address=addresses.of(job),
        name=job.name,
        where=job.namespace or "this machine",
        state=state,
        figure=drawing.figure(state),
        tasks=", ".join(
            f"{name.lower()} {role.ready}" for name, role in job.status.replica_statuses.items() if role.ready
        ),
        progress=progress.position() if progress and has_step else "",
        left=_left(progress.seconds_left) if progress and runs else "",
        loss=_loss(details),
        spark=charts.sparkline(progress),
        cause=cause(job, details),
        queue=details.queue.queue if details and details.queue else "",
        position=details.queue.words if details and details.queue else "",
        owner=details.owner if details else "",
        restarts=str(job.status.restarts or ""),
        gpu=_hours(details.gpu_hours if details else None),
        cpu=_hours(details.cpu_hours if details else None),
        age=age((now - job.created).total_seconds()),
        created=job.created,
        is_over=listed.is_over,
    )


def _of_sweep(listed: Listed, sweep: SweepState, now: datetime, *, is_open: bool) -> Row:
    job, best = listed.job, sweep_text.best_so_far(sweep)
    return Row(
        address=addresses.of(job),
        name=job.name,
        where=job.namespace or "this machine",
        state=sweep.phase,
        figure=drawing.figure(sweep.phase),
        tasks=f"sweep of {sweep.spec.trials} trials",
        progress=sweep_text.progress(sweep),
        spark=charts.spark(best),
        cause=sweep.message,
        age=age((now - job.created).total_seconds()),
        created=job.created,
        is_over=listed.is_over,
        is_sweep=True,
        trials=trial_table.table(sweep, job.namespace, now, SHOWN_TRIALS) if is_open else None,
    )


def cause(job: JobSummary, details: Details | None) -> str:
    """Why it waits or has failed, as `tfyard why` says it; until that is known, as its status does."""
    if details and details.answer and details.answer.code:
        return details.answer.sentence
    for name in ("Blocked", "Waiting", "Stalled"):
        condition = job.status.condition(name)
        if condition and condition.status == "True":
            return condition.message
    failure = job.status.failure
    return failure_line(failure) if failure and failure.message else ""


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"{duration(seconds)} left"


def _loss(details: Details | None) -> str:
    curve = details.progress.loss() if details and details.progress else None
    return number(curve.points[-1][1]) if curve else ""


def _hours(hours: float | None) -> str:
    return "" if hours is None else wording.hours(hours)


# --- the list


class JobList(Struct, frozen=True, kw_only=True):
    rows: list[Row]
    total: int
    """Number of jobs that match, on all pages."""
    counts: dict[str, int]
    """Filter -> number of jobs, whatever is searched for."""
    pages: int
    everything: int


def listed(viewer: Viewer, query: JobsQuery, now: datetime) -> JobList:
    board = viewer.board
    everything = list(board.rows.values())
    states = [job_table.state(each.job) for each in everything]
    counts = {kind: sum(state in among for state in states) for kind, among in KINDS.items()}
    fitting = [each for each, state in zip(everything, states, strict=True) if _fits(each.job, state, query)]
    fitting.sort(key=lambda each: (each.job.namespace, each.job.name))
    fitting.sort(key=_order(query.sort, board.details), reverse=_is_reversed(query))
    pages = max(1, -(-len(fitting) // PER_PAGE))
    first = (min(query.page, pages) - 1) * PER_PAGE
    shown = fitting[first : first + PER_PAGE]
    rows = [_row_of(board, each, query, now) for each in shown]
    return JobList(rows=rows, total=len(fitting), counts=counts, pages=pages, everything=len(everything))


def _row_of(board: JobsBoard, listed: Listed, query: JobsQuery, now: datetime) -> Row:
    address = addresses.of(listed.job)
    return row(listed, board.details.get(address), now, is_open=address.key in query.open)


def _fits(job: JobSummary, state: str, query: JobsQuery) -> bool:
    if query.state and state not in KINDS[query.state]:
        return False
    if query.where and (job.namespace or "-") != query.where:
        return False
    text = query.find.casefold()
    return not text or text in f"{job.namespace} {job.name} {job.job} {state}".casefold()


def _order(sort: str, details: Mapping[Address, Details]) -> Callable[[Listed], Any]:
    def hours(each: Listed, kind: str) -> float:
        known = details.get(addresses.of(each.job))
        return (getattr(known, f"{kind}_hours") if known else None) or 0.0

    orders: dict[str, Callable[[Listed], Any]] = {
        "name": lambda each: each.job.name,
        "state": lambda each: job_table.state(each.job),
        "queue": lambda each: _in_queue(details.get(addresses.of(each.job))),
        "owner": lambda each: getattr(details.get(addresses.of(each.job)), "owner", "") or LAST,
        "restarts": lambda each: each.job.status.restarts,
        "gpu": lambda each: hours(each, "gpu"),
        "cpu": lambda each: hours(each, "cpu"),
        "age": lambda each: each.job.created,
    }
    return orders[sort]


def _in_queue(known: Details | None) -> tuple[str, int]:
    place = known.queue if known else None
    return (place.queue, place.position) if place else (LAST, 0)


def _is_reversed(query: JobsQuery) -> bool:
    """The newest, and the greatest numbers, are first unless the address says otherwise."""
    return query.down if query.sort in ("name", "state", "queue", "owner") else not query.down


def values(viewer: Viewer, query: JobsQuery) -> dict[str, Any]:
    now = datetime.now(UTC)
    found = listed(viewer, query, now)
    namespaces = sorted({row.job.namespace for row in viewer.board.rows.values()})
    return {
        "jobs": found,
        "query": query,
        "columns": COLUMNS,
        "hidden": {*query.hide, *_without_values(found.rows)},
        "orders": ORDERS,
        "is_descending": _is_reversed(query),
        "kinds": list(KINDS),
        "places": [(name or "-", name or "this machine") for name in namespaces],
        "freshness": viewer.board.freshness,
        "now": now,
        "nothing": [source.jobs.nothing() for source in viewer.identity.sources]
        if not found.everything
        else [],
    }


def _without_values(rows: Sequence[Row]) -> list[str]:
    """Columns that are empty for all jobs: few jobs ask for GPUs or name a queue."""
    return [
        name
        for name in ("gpu", "cpu", "restarts", "loss", "queue", "owner")
        if not any(getattr(row, name) for row in rows)
    ]


def shown(known: Mapping[str, Any]) -> Sequence[Address]:
    """The page with these values as HTML."""
    return [row.address for row in known["jobs"].rows]


def parts(known: Mapping[str, Any]) -> list[PagePart]:
    return [drawing.part(id, "jobs_parts.html", {"v": known}) for id in ("fresh", "tabs", "rows", "pager")]
