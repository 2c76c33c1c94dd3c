"""What every handler needs: who asks, which job is meant, a whole page as the answer, an error in words."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web
from multidict import MultiDict

from tfyard.dashboard import drawing
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.security import PageSettings
from tfyard.dashboard.sessions import Sessions
from tfyard.dashboard.viewer import Busy, Viewer
from tfyard.errors import NoSuchJob, NotPossible, TfyardError, Usage
from tfyard.kube import Forbidden, KubeError, Unauthorized
from tfyard.overview.wording import harmless
from tfyard.remote.reading.jobs import RemovedJob

SETTINGS = web.AppKey("settings", PageSettings)
SESSIONS = web.AppKey("sessions", Sessions)
VIEWER = "viewer"
STATUSES: Mapping[type[TfyardError], HTTPStatus] = {
    RemovedJob: HTTPStatus.GONE,
    NoSuchJob: HTTPStatus.NOT_FOUND,
    Usage: HTTPStatus.BAD_REQUEST,
    Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    NotPossible: HTTPStatus.CONFLICT,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    KubeError: HTTPStatus.BAD_GATEWAY,
}
HEADINGS = {
    HTTPStatus.GONE: "This job is gone",
    HTTPStatus.NOT_FOUND: "There is no such job",
    HTTPStatus.CONFLICT: "This is not possible",
    HTTPStatus.BAD_GATEWAY: "The cluster does not answer",
    HTTPStatus.FORBIDDEN: "You may not do this",
}


def viewer_of(request: web.Request) -> Viewer:
    viewer: Viewer = request[VIEWER]
    return viewer


def address_of(request: web.Request) -> Address:
    return Address(request.match_info.get("namespace", ""), request.match_info["name"])


async def fields_of(request: web.Request) -> MultiDict[str]:
    """The fields of a form; no form of the page has files."""
    try:
        sent = await request.post()
    except (LookupError, ValueError):  # an encoding that nobody knows, or bytes that are no text in it
        raise Usage("this form cannot be read: its text or its encoding is damaged") from None
    return MultiDict((name, value) for name, value in sent.items() if isinstance(value, str))


def root(request: web.Request) -> str:
    """The way from this address to the first page: relative, so that it holds behind any proxy."""
    below = request.path.removeprefix(request.app[SETTINGS].base)
    return "../" * (below.count("/") - 1) or "./"


def whole(
    request: web.Request, template: str, values: Mapping[str, Any], status: int = HTTPStatus.OK
) -> web.Response:
    viewer: Viewer | None = request.get(VIEWER)
    around = {
        "root": root(request),
        "user": viewer.identity.user if viewer else "",
        "named": ", ".join(viewer.identity.namespaces) if viewer else "",
        "has_cluster": bool(viewer and viewer.identity.connect),
        "notices": viewer.noticed(request.query.get("notice", "")) if viewer else [],
        "query_string": request.query_string,
    }
    html = drawing.page(template, {**around, **values})
    return web.Response(text=html, content_type="text/html", status=status)


def problem(request: web.Request, error: TfyardError) -> web.Response:
    """The message of an error in the words of the terminal: as a page, or as JSON where JSON was asked for."""
    status = next((found for kind, found in STATUSES.items() if isinstance(error, kind)), HTTPStatus.CONFLICT)
    if request.path.endswith(".json"):
        return web.json_response({"error": harmless(str(error))}, status=status)
    values = {"heading": HEADINGS.get(status, "This did not work"), "text": harmless(str(error))}
    return whole(request, "message.html", values, status)


def see_other(where: str) -> web.Response:
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": where})
