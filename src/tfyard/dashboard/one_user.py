"""The page on loopback has one user: whoever has the address that the terminal has printed."""

import hmac
import secrets
from http import HTTPStatus

from aiohttp import web

from tfyard.dashboard.answers import see_other, whole
from tfyard.dashboard.sessions import COOKIE
from tfyard.dashboard.viewer import Viewer

TOKEN = "token"
MOST_SESSIONS = 32
HOW_TO_ENTER = (
    "An address of this page opens it once, in one browser. Press Enter in the terminal where "
    "`tfyard dashboard` runs: it prints a new one."
)


class OneUser:
    """The user who has started the page. A printed token opens it once; then a cookie does."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._token = ""
        self._cookies: list[str] = []

    def new_token(self) -> str:
        """The next token; one that was printed before is not accepted any more."""
        self._token = secrets.token_urlsafe(24)
        return self._token

    async def viewer(self, request: web.Request) -> Viewer | None:
        cookie = request.cookies.get(COOKIE, "")
        known = [each for each in self._cookies if hmac.compare_digest(each.encode(), cookie.encode())]
        return self._viewer if known else None

    async def enter(self, request: web.Request) -> web.Response:
        """The cookie has no path of its own: the browser takes that of the address, as it sees it, also below the
        sub-path of a proxy that this server knows nothing about. A random word in it keeps the cookie from other
        servers of this machine: cookies ignore ports."""
        token = request.query.get(TOKEN, "")
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            words = {"heading": "Open this page by its address", "text": HOW_TO_ENTER}
            return whole(request, "message.html", words, HTTPStatus.UNAUTHORIZED)
        self._token = ""
        cookie = secrets.token_urlsafe(32)
        self._cookies = [*self._cookies, cookie][-MOST_SESSIONS:]
        answer = see_other("./")
        answer.set_cookie(COOKIE, cookie, httponly=True, samesite="Strict", path="")
        return answer

    async def refused(self, _viewer: Viewer) -> bool:
        """The user stays signed in: their kubeconfig may get new credentials at any time."""
        return False

    def routes(self, _base: str) -> list[web.RouteDef]:
        return []

    async def close(self) -> None:
        await self._viewer.close()
