"""What the page tells programs: JSON with the words of the terminal's `-o json`, described in OpenAPI."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from tfyard import __version__
from tfyard.dashboard import job_answers, jobs_page
from tfyard.dashboard.answers import viewer_of
from tfyard.dashboard.board import Freshness
from tfyard.dashboard.jobs_page import KINDS, ORDERS, Row
from tfyard.dashboard.live import Update
from tfyard.overview import top
from tfyard.overview.job_view import JobView
from tfyard.overview.why import Answer

LIVE = "What has changed. `poll=1`: one answer; otherwise server-sent events, each with such a value."
ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}


class JobSaid(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job of the list, with the cells of its row as text."""

    name: str
    namespace: str = ""
    """Empty for a run on this machine."""
    state: str
    tasks: str = ""
    progress: str = ""
    left: str = ""
    loss: str = ""
    cause: str = ""
    queue: str = ""
    position: str = ""
    owner: str = ""
    restarts: str = ""
    gpu_hours: str = msgspec.field(default="", name="gpuHours")
    cpu_hours: str = msgspec.field(default="", name="cpuHours")
    created: datetime
    is_over: bool = msgspec.field(default=False, name="isOver")


class JobsSaid(Struct, frozen=True):
    """The jobs of one page of the list, and how current they are."""

    total: int
    pages: int
    jobs: list[JobSaid]
    freshness: Sequence[Freshness]


class WholeJob(Struct, frozen=True, omit_defaults=True):
    """All that is known of a job: `why`, `describe` and `top` with `-o json`."""

    job: JobSaid
    why: Answer | None = None
    view: JobView | None = None
    top: list[dict[str, Any]] = []
    problems: Sequence[str] = ()


def routes(base: str) -> list[web.RouteDef]:
    return [
        web.get(f"{base}/openapi.json", _description),
        web.get(f"{base}/jobs.json", _jobs),
        web.get(f"{base}/job/{{namespace}}/{{name}}/job.json", _job),
        web.get(f"{base}/run/{{name}}/job.json", _job),
    ]


def said(row: Row) -> JobSaid:
    return JobSaid(
        name=row.name,
        namespace=row.address.namespace,
        state=row.state,
        tasks=row.tasks,
        progress=row.progress,
        left=row.left,
        loss=row.loss,
        cause=row.cause,
        queue=row.queue,
        position=row.position,
        owner=row.owner,
        restarts=row.restarts,
        gpu_hours=row.gpu,
        cpu_hours=row.cpu,
        created=row.created,
        is_over=row.is_over,
    )


async def _jobs(request: web.Request) -> web.Response:
    viewer, query = viewer_of(request), jobs_page.read(request.query)
    await viewer.board.until_read(job_answers.FIRST_READ)
    known = jobs_page.values(viewer, query)
    viewer.board.look_at(jobs_page.shown(known))
    found = known["jobs"]
    rows = [said(row) for row in found.rows]
    return _json(JobsSaid(found.total, found.pages, rows, viewer.board.freshness))


async def _job(request: web.Request) -> web.Response:
    job = await job_answers.known(request)
    known, now = job.details, datetime.now(UTC)
    row = said(jobs_page.row(job.row, known, now))
    if known is None:
        return _json(WholeJob(row))
    uses = [top.plain(use) for use in known.uses]
    return _json(WholeJob(row, known.answer, known.view, uses, known.problems))


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


# --- the description


async def _description(_: web.Request) -> web.Response:
    return _json(description())


def description() -> dict[str, Any]:
    """OpenAPI 3.1; its schemas are those of the values that are sent."""
    kinds = (JobsSaid, WholeJob, Update)
    references, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    jobs, job, update = references
    query = [_parameter("state", KINDS), _parameter("find"), _parameter("where"), _parameter("sort", ORDERS)]
    query += [_parameter("down", ["1"]), _parameter("page")]
    log = [_parameter("task"), _parameter("find"), _parameter("after"), _parameter("poll", ["1"])]
    of_job = [_parameter("namespace", where="path"), _parameter("name", where="path")]
    of_run = of_job[1:]
    paths = {
        "/jobs.json": _get("The jobs of the list.", query, jobs),
        "/live": _get(LIVE, [*query, log[-1]], update),
        "/job/{namespace}/{name}/job.json": _get("A TFJob.", of_job, job),
        "/job/{namespace}/{name}/live": _get(LIVE, [*of_job, *log], update),
        "/run/{name}/job.json": _get("A run on this machine.", of_run, job),
        "/run/{name}/live": _get(LIVE, [*of_run, *log], update),
    }
    info = {"title": "tfyard dashboard", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _parameter(
    name: str, values: Sequence[str] | dict[str, Any] = (), where: str = "query"
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", **({"enum": list(values)} if values else {})}
    return {"name": name, "in": where, "required": where == "path", "schema": schema}


def _get(text: str, parameters: list[dict[str, Any]], schema: dict[str, Any]) -> dict[str, Any]:
    answers = {
        "200": _answer(text, schema),
        "401": {"description": "Sign in first: a page, as people see it."},
    }
    if text != LIVE:
        answers["default"] = _answer("Why there is no answer, as `tfyard` says it.", ERROR)
    return {"get": {"summary": text, "parameters": parameters, "responses": answers}}


def _answer(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
