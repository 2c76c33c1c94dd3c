"""The page Compare: what `tfyard compare` says of several jobs. The first of the address is the baseline."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct

from tfyard import aio
from tfyard.dashboard import addresses, charts, commands, drawing
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.answers import viewer_of, whole
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import NoSuchJob, NotPossible, Usage
from tfyard.overview import comparison_text
from tfyard.overview.comparison import Comparison, Row
from tfyard.sdk import comparing
from tfyard.sdk.place import Place

MOST = 20
"""Most jobs of one comparison: each log is read from its first to its last line."""


class ComparedSide(Struct, frozen=True, kw_only=True):
    """A column of the table."""

    label: str
    address: Address
    state: str
    figure: str
    colour: str
    started: datetime | None
    pin: str
    """The address with this job as the baseline; empty: it is the baseline."""
    leave_out: str
    """The address without this job; empty: two jobs are the fewest."""


async def show(request: web.Request) -> web.Response:
    viewer = viewer_of(request)
    found = await _compared(viewer, request)
    return whole(request, "compare.html", values(viewer, found))


async def as_csv(request: web.Request) -> web.Response:
    found = await _compared(viewer_of(request), request)
    answer = web.Response(text=comparison_text.csv(found), content_type="text/csv", charset="utf-8")
    answer.headers["Content-Disposition"] = 'attachment; filename="comparison.csv"'
    return answer


async def _compared(viewer: Viewer, request: web.Request) -> Comparison:
    chosen = list(dict.fromkeys(map(addresses.read, request.query.getall("job", []))))
    if not chosen:
        raise NotPossible("no job is chosen: mark some in the list first")
    if len(chosen) > MOST:
        raise Usage(f"{len(chosen)} jobs: at most {MOST} are compared at once")
    return await aio.in_thread(lambda: comparing.compare(_places(viewer, chosen)))


def _places(viewer: Viewer, chosen: Sequence[Address]) -> list[Place]:
    """The places of the jobs; one error names all that cannot be found."""
    places, problems = list[Place](), list[str]()
    for address in chosen:
        try:
            places.append(viewer.identity.find(address))
        except (NoSuchJob, Usage) as problem:
            problems.append(str(problem))
    if problems:
        raise NoSuchJob("\n".join(problems))
    return places


def values(viewer: Viewer, found: Comparison) -> dict[str, Any]:
    jobs = [Address(job.record.namespace, job.record.name) for job in found.jobs]
    return {
        "sides": [_side(found, jobs, turn) for turn in range(len(jobs))],
        "sections": [
            (section, [row for _, row in rows])
            for section, rows in groupby(_rows(found), key=lambda each: each[0])
        ],
        "differs": bool(found.differences),
        "charts": charts.compared(found),
        "notes": found.notes,
        "csv": f"compare.csv{_query(jobs)}",
        "line": _line(viewer, jobs),
        "now": datetime.now(UTC),
    }


def _rows(found: Comparison) -> list[tuple[str, Row]]:
    """The rows that a terminal prints, with what differs first."""
    rows = comparison_text.rows(found)
    return sorted(rows, key=lambda each: each[0] == "job")


def _side(found: Comparison, jobs: Sequence[Address], turn: int) -> ComparedSide:
    record = found.jobs[turn].record
    others = [job for at, job in enumerate(jobs) if at != turn]
    return ComparedSide(
        label=found.labels[turn],
        address=jobs[turn],
        state=record.state,
        figure=drawing.figure(record.state),
        colour=charts.colour(turn),
        started=record.started,
        pin=_query([jobs[turn], *others]) if turn else "",
        leave_out=_query(others) if len(others) > 1 else "",
    )


def _query(jobs: Sequence[Address]) -> str:
    return f"?{urlencode([('job', job.key) for job in jobs])}"


def _line(viewer: Viewer, jobs: Sequence[Address]) -> str:
    """The command line of the same comparison; empty: the jobs are of several namespaces, and a command takes
    one."""
    namespaces = {job.namespace for job in jobs} - {""}
    return commands.line("compare", jobs, (), viewer.identity.options) if len(namespaces) < 2 else ""
