"""The user of a request: on loopback there is one (`one_user.py`), in the cluster many (`signing_in.py`)."""

from typing import Protocol

from aiohttp import web

from tfyard.dashboard.viewer import Viewer

COOKIE = "tfyard-dashboard"


class Sessions(Protocol):
    async def viewer(self, request: web.Request) -> Viewer | None:
        """The viewer who sends the request; None: a sign-in is needed first."""

    async def enter(self, request: web.Request) -> web.Response:
        """Sign the user in by this request, or answer how to sign in."""

    async def refused(self, viewer: Viewer) -> bool:
        """The cluster does not accept the credentials of this viewer; the result: they have to enter again."""

    def routes(self, base: str) -> list[web.RouteDef]:
        """Addresses for users who are not signed in."""

    async def close(self) -> None: ...
