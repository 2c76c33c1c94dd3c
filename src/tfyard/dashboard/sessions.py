"""Whose request it is: on loopback of the one user (`one_user.py`), in the cluster of many (`signing_in.py`)."""

from typing import Protocol

from aiohttp import web

from tfyard.dashboard.viewer import Viewer
from tfyard.errors import TfyardError

COOKIE = "tfyard-dashboard"


class Busy(TfyardError):
    """The page serves as many people as it can."""


class Sessions(Protocol):
    async def viewer(self, request: web.Request) -> Viewer | None:
        """The viewer who sends the request; None: a sign-in is needed first."""

    async def enter(self, request: web.Request) -> web.Response:
        """Let somebody in by this request, or say how to be let in."""

    async def refused(self, viewer: Viewer) -> bool:
        """The cluster does not accept the credentials of this viewer; the result: they have to enter again."""

    def routes(self, base: str) -> list[web.RouteDef]:
        """Addresses for those who are not in."""

    async def close(self) -> None: ...
