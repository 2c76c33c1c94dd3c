"""The addresses of one job: its page, what changes on it, its log as a file, and the page as a file."""

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from aiohttp import web

from tfyard import aio
from tfyard.dashboard import commands, drawing, job_log, job_page, job_specs, live, log_lines, sweep_page
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.answers import address_of, viewer_of, whole
from tfyard.dashboard.details import Details
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import NoSuchJob, TfyardError, Usage
from tfyard.overview.curve_panels import MOST_PANELS
from tfyard.sdk.place import Listed, Place

LARGEST_FILE = 10_000_000
"""Bytes of a page that is saved: most trackers of issues accept that."""
FIRST_READ = 3.0
"""Seconds that a page waits until its job has been read; the rest comes by its stream."""


class KnownJob:
    """A job that a page is about."""

    def __init__(self, viewer: Viewer, address: Address, row: Listed, details: Details | None) -> None:
        self.viewer, self.address, self.row, self.details = viewer, address, row, details

    @property
    def tasks(self) -> list[str]:
        view = self.details.view if self.details else None
        return [task.name for task in view.job.tasks()] if view and view.job else []

    @property
    def is_gone(self) -> bool:
        return self.address in self.viewer.board.gone

    async def missing(self) -> dict[str, str]:
        with suppress(TfyardError):  # a cluster that does not answer says so elsewhere on the page
            return {} if self.is_gone else await self.viewer.board.missing(self.address)
        return {}


async def known(request: web.Request) -> KnownJob:
    """The job of the address; raises if there is none."""
    viewer, address = viewer_of(request), address_of(request)
    await viewer.board.until_read(FIRST_READ)
    if address not in viewer.board.gone:
        await viewer.board.read_now(address, FIRST_READ)
    details = viewer.board.details.get(address)
    row = job_page.row_of(viewer, address)
    if row is None:
        place = await aio.in_thread(_find, viewer, address)
        row = await aio.in_thread(place.row)
    return KnownJob(viewer, address, row, details)


def _find(viewer: Viewer, address: Address) -> Place:
    """The place of a job; its error says why there is none. An address is no command line that could be wrong."""
    try:
        return viewer.identity.find(address)
    except Usage as problem:
        raise NoSuchJob(str(problem)) from None


async def show(request: web.Request) -> web.Response:
    job = await known(request)
    viewer, address = job.viewer, job.address
    if job.row.sweep is not None:
        sweep = {"v": sweep_page.values(viewer, address, job.row, await job.missing())}
        return whole(request, "sweep.html", sweep, HTTPStatus.GONE if job.is_gone else HTTPStatus.OK)
    choice = log_lines.read(request.query)
    values = job_page.values(viewer, address, job.row, await job.missing())
    log = None if job.is_gone else await job_log.shown(viewer, address, job.tasks, choice)
    words = {
        "v": values,
        "log": log,
        "specs": job_specs.shown(job.details.specs) if job.details else [],
        "log_line": commands.line("logs", [address], ["-f"], viewer.identity.options),
    }
    status = HTTPStatus.GONE if job.is_gone else HTTPStatus.OK
    return whole(request, "job.html", words, status)


async def changes(request: web.Request) -> web.StreamResponse:
    job = await known(request)
    viewer, address = job.viewer, job.address
    choice = log_lines.read(request.query)
    view = None
    if not choice.at and not job.is_gone and job.row.sweep is None:
        view = await job_log.view(viewer, address, job.tasks, choice, request.query.get("after", ""))

    async def parts() -> list[PagePart]:
        row = job_page.row_of(viewer, address) or job.row
        viewer.board.look_at([address], whole=True)
        draw = job_page.parts if row.sweep is None else sweep_page.parts
        return draw(viewer, address, row, await job.missing())

    async def renew() -> None:
        if view:
            await job_log.renew(viewer, address, view)

    try:
        return await live.answer(request, viewer, live.Subject(address, parts, view, renew))
    finally:
        if view:
            viewer.leave(address, view.feed)


async def log_file(request: web.Request) -> web.StreamResponse:
    job = await known(request)
    choice = log_lines.read(request.query)
    chunks = job_log.chunks(job.viewer, job.address, job.tasks, choice)
    first = await anext(chunks, b"")  # whatever stands in the way is told before the answer begins
    headers = {"Content-Type": "text/plain; charset=utf-8", **job.address.file(".log")}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    await response.write(first)
    async for chunk in chunks:
        await response.write(chunk)
    return response


async def as_file(request: web.Request) -> web.Response:
    """The page with everything in it, for a ticket: it needs neither this server nor a script."""
    job = await known(request)
    values = job_page.values(job.viewer, job.address, job.row, {})
    log = None if job.is_gone else await aio.in_thread(job_log.saved, job.viewer, job.address, job.tasks)
    words = {
        "v": {**values, "buttons": [], "opened": []},
        "log": log,
        "specs": job_specs.shown(job.details.specs) if job.details else [],
        "style": drawing.static("style.css").decode(),
        "left_out": "",
    }
    html = await aio.in_thread(_bounded, words)
    return web.Response(text=html, content_type="text/html", headers=job.address.file(".html"))


def _bounded(words: Mapping[str, Any]) -> str:
    """The page as a file; of what makes it too large, less."""
    fewer = {"v": {**words["v"], "charts": words["v"]["charts"][:MOST_PANELS]}}
    none = {
        "v": {**words["v"], "charts": []},
        "specs": [],
        "left_out": "The curves and the spec are left out.",
    }
    for change in ({}, fewer, none):
        html = drawing.page("file.html", {**words, **change})
        if len(html.encode()) <= LARGEST_FILE:
            break
    return html
