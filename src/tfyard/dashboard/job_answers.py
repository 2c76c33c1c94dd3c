"""The addresses of one job: its page, what changes on it, its log as a file, and the page as a file."""

from contextlib import suppress
from http import HTTPStatus

from aiohttp import web

from tfyard import aio
from tfyard.dashboard import commands, drawing, job_log, job_page, live, log_lines
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.answers import address_of, viewer_of, whole
from tfyard.dashboard.details import Details
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import TfyardError, Usage
from tfyard.remote.jobs import NoSuchJob
from tfyard.sdk.place import Listed, Place

FIRST_READ = 3.0
LONGEST_SPEC = 1_000_000
"""Characters of a spec in a page that is saved."""
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
        place = await aio.in_thread(_found, viewer, address)
        summary = await aio.in_thread(place.summary)
        row = Listed(place.title, summary, summary.status.is_finished)
    return KnownJob(viewer, address, row, details)


def _found(viewer: Viewer, address: Address) -> Place:
    """The place of a job; its error says why there is none. An address is no command line that could be wrong."""
    try:
        return viewer.identity.find(address)
    except Usage as problem:
        raise NoSuchJob(str(problem)) from None


async def show(request: web.Request) -> web.Response:
    job = await known(request)
    viewer, address = job.viewer, job.address
    choice = log_lines.read(request.query)
    values = job_page.values(viewer, address, job.row, await job.missing())
    log = None if job.is_gone else await job_log.shown(viewer, address, job.tasks, choice)
    words = {
        "v": values,
        "log": log,
        "spec": job.details.spec if job.details else "",
        "log_line": commands.line("logs", [address], ["-f"], viewer.identity.options),
    }
    status = HTTPStatus.GONE if job.is_gone else HTTPStatus.OK
    return whole(request, "job.html", words, status)


async def changes(request: web.Request) -> web.StreamResponse:
    job = await known(request)
    viewer, address = job.viewer, job.address
    choice = log_lines.read(request.query)
    after = request.query.get("after", "")
    number = int(after) if after.isdecimal() else 0
    view = None
    if not choice.at and not job.is_gone:
        view = await job_log.view(viewer, address, job.tasks, choice, number)

    async def parts() -> list[PagePart]:
        row = job_page.row_of(viewer, address) or job.row
        viewer.board.look_at([address], whole=True)
        return job_page.parts(viewer, address, row, await job.missing())

    try:
        return await live.answer(request, viewer, live.Subject(parts, view))
    finally:
        if view:
            viewer.leave(address)


async def log_file(request: web.Request) -> web.StreamResponse:
    job = await known(request)
    choice = log_lines.read(request.query)
    name = f"{job.address.name}.log"
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{name}"',
        }
    )
    await response.prepare(request)
    async for chunk in job_log.chunks(job.viewer, job.address, job.tasks, choice):
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
        "spec": (job.details.spec if job.details else "")[:LONGEST_SPEC],
        "style": drawing.static("style.css").decode(),
    }
    answer = web.Response(text=drawing.page("file.html", words), content_type="text/html")
    answer.headers["Content-Disposition"] = f'attachment; filename="{job.address.name}.html"'
    return answer
