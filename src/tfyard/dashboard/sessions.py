"""Whose request it is. On loopback there is one user: whoever has the address that the terminal has printed."""

import hmac
import secrets
from typing import Protocol

from aiohttp import web

from tfyard.dashboard.viewer import Viewer

COOKIE, TOKEN = "tfyard-dashboard", "token"
MOST_SESSIONS = 32


class Sessions(Protocol):
    def viewer(self, request: web.Request) -> Viewer | None:
        """Who sends the request; None: they have to enter first."""

    def enter(self, request: web.Request) -> web.Response | None:
        """Let somebody in by this request; None: it does not prove who they are."""

    def how_to_enter(self) -> str:
        """What to do to be let in, as a sentence."""

    async def close(self) -> None: ...


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

    def viewer(self, request: web.Request) -> Viewer | None:
        cookie = request.cookies.get(COOKIE, "")
        known = [each for each in self._cookies if hmac.compare_digest(each.encode(), cookie.encode())]
        return self._viewer if known else None

    def enter(self, request: web.Request) -> web.Response | None:
        """The cookie has no path of its own: the browser takes that of the address, as it sees it, also below the
        sub-path of a proxy that this server knows nothing about. A random word in it keeps the cookie from other
        servers of this machine: cookies ignore ports."""
        token = request.query.get(TOKEN, "")
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token = ""
        cookie = secrets.token_urlsafe(32)
        self._cookies = [*self._cookies, cookie][-MOST_SESSIONS:]
        answer = web.Response(status=303, headers={"Location": "./"})
        answer.set_cookie(COOKIE, cookie, httponly=True, samesite="Strict", path="")
        return answer

    def how_to_enter(self) -> str:
        return (
            "An address of this page opens it once, in one browser. Press Enter in the terminal where "
            "`tfyard dashboard` runs: it prints a new one."
        )

    async def close(self) -> None:
        await self._viewer.close()
