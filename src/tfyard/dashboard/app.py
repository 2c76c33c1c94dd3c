"""The web application: which address has which page. All addresses in its answers are relative, so that it works
below any path of a proxy."""

from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from tfyard.dashboard import (
    actions,
    answers,
    cluster_page,
    compare_page,
    drawing,
    job_answers,
    jobs_page,
    live,
    openapi,
    security,
)
from tfyard.dashboard.answers import SESSIONS, SETTINGS, VIEWER, viewer_of, whole
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.security import PageSettings
from tfyard.dashboard.sessions import Sessions
from tfyard.errors import TfyardError
from tfyard.kube import Unauthorized

FIRST_READ = 2.0
"""Seconds that the first page waits until the jobs have been listed."""
LONGEST_FORM = 1 << 18
"""Bytes of a form that are accepted."""
OPEN = web.AppKey("open", frozenset[object])
"""Addresses that need no sign-in: stylesheet, script, icon, and those by which users sign in."""


def make(sessions: Sessions, settings: PageSettings) -> web.Application:
    middlewares: tuple[Middleware, ...] = (security.guard(settings), _answered, _entered)
    app = web.Application(middlewares=middlewares, client_max_size=LONGEST_FORM)
    app[SESSIONS], app[SETTINGS] = sessions, settings
    entrances = sessions.routes(settings.base)
    app[OPEN] = frozenset((_static, *(route.handler for route in entrances)))
    app.on_response_prepare.append(security.add_headers)
    app.on_shutdown.append(_close)  # before the server waits for open streams: it ends them
    app.add_routes([*_routes(settings.base), *entrances])
    return app


def _routes(base: str) -> list[web.RouteDef]:
    routes = [
        web.get(f"{base}/", _jobs),
        web.get(f"{base}/live", _jobs_live),
        web.get(f"{base}/cluster/", cluster_page.show),
        web.get(f"{base}/compare", compare_page.show),
        web.get(f"{base}/compare.csv", compare_page.as_csv),
        web.get(f"{base}/static/{{file}}", _static),
        *openapi.routes(base),
        web.get(f"{base}/do/{{action}}", actions.ask),
        web.post(f"{base}/do/{{action}}", actions.act),
    ]
    for where in (f"{base}/job/{{namespace}}/{{name}}/", f"{base}/run/{{name}}/"):
        routes += [
            web.get(where, job_answers.show),
            web.get(f"{where}live", job_answers.changes),
            web.get(f"{where}log", job_answers.log_file),
            web.get(f"{where}file", job_answers.as_file),
            web.get(f"{where}do/{{action}}", actions.ask),
            web.post(f"{where}do/{{action}}", actions.act),
        ]
    return routes


async def _close(app: web.Application) -> None:
    await app[SESSIONS].close()


# --- around all answers


@web.middleware
async def _entered(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.match_info.handler in request.app[OPEN]:
        return await handler(request)
    sessions = request.app[SESSIONS]
    viewer = await sessions.viewer(request)
    if viewer is None:
        return await sessions.enter(request)
    request[VIEWER] = viewer
    try:
        with viewer.asked():
            return await handler(request)
    except Unauthorized:
        if not await sessions.refused(viewer):
            raise
        del request[VIEWER]
        return await sessions.enter(request)


@web.middleware
async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The answer of the handler; an error becomes a page. A client that has disconnected is no error."""
    try:
        return await handler(request)
    except ConnectionError:
        if request.transport is None or request.transport.is_closing():
            return web.Response()
        raise
    except TfyardError as error:
        return answers.problem(request, error)
    except web.HTTPNotFound:
        words = {
            "heading": "There is no such page",
            "text": "The address may be of another version of tfyard.",
        }
        return whole(request, "message.html", words, HTTPStatus.NOT_FOUND)


# --- the list of jobs


async def _jobs(request: web.Request) -> web.Response:
    viewer, query = viewer_of(request), jobs_page.read(request.query)
    await viewer.board.until_read(FIRST_READ)
    known = jobs_page.values(viewer, query)
    viewer.board.look_at(jobs_page.shown(known))
    return whole(request, "jobs.html", {"v": known})


async def _jobs_live(request: web.Request) -> web.StreamResponse:
    viewer, query = viewer_of(request), jobs_page.read(request.query)

    async def parts() -> list[PagePart]:
        known = jobs_page.values(viewer, query)
        viewer.board.look_at(jobs_page.shown(known))
        return jobs_page.parts(known)

    return await live.answer(request, viewer, live.Subject(query, parts))


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["file"]
    if name not in drawing.STATIC:
        raise web.HTTPNotFound
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    kind = drawing.STATIC[name]
    return web.Response(body=drawing.static(name), content_type=kind, charset="utf-8", headers=headers)
