"""Signing in at a page in the cluster: with a token that is pasted into a form, or that an authenticating proxy
sends with each request. No other header says who somebody is: `Impersonate-User` and the like are not read."""

from http import HTTPStatus
from typing import Any

from aiohttp import web

from tfyard.dashboard import bearer
from tfyard.dashboard.answers import SETTINGS, fields_of, see_other, whole
from tfyard.dashboard.people import People
from tfyard.dashboard.proxies import as_seen
from tfyard.dashboard.sessions import COOKIE
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import Usage

NAMESPACES = "tfyard-namespaces"
"""A cookie with the namespaces that somebody has chosen: it tells nothing, and outlives the session."""
A_YEAR = 365 * 24 * 3600


class SigningIn:
    """Sessions of many people."""

    def __init__(self, people: People) -> None:
        self._people = people

    def routes(self, base: str) -> list[web.RouteDef]:
        return [
            web.get(f"{base}/healthz", self._is_alive),
            web.post(f"{base}/sign-in", self._sign_in),
            web.post(f"{base}/sign-out", self._sign_out),
            web.post(f"{base}/namespaces", self._choose),
        ]

    async def viewer(self, request: web.Request) -> Viewer | None:
        """A token in the request itself wins over a cookie."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            person = await self._people.of_token(token.strip())
        else:
            person = self._people.of_cookie(request.cookies.get(COOKIE, ""))
        return await person.viewer(_chosen(request)) if person else None

    async def enter(self, request: web.Request) -> web.Response:
        was_sent = "Authorization" in request.headers
        return self._form(
            request, "The cluster does not accept the token of this request." if was_sent else ""
        )

    async def refused(self, viewer: Viewer) -> bool:
        await self._people.refuse(viewer)
        return True

    async def close(self) -> None:
        await self._people.close()

    # --- answers

    async def _is_alive(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _sign_in(self, request: web.Request) -> web.Response:
        fields = await fields_of(request)
        text = fields.get("namespaces", "")
        try:
            names = bearer.namespaces(text)
        except Usage as problem:
            return self._form(request, str(problem), text)
        person = await self._people.of_token(fields.get("token", "").strip())
        if person is None:
            return self._form(
                request, "The cluster does not accept this token: it is wrong, or has ended.", text
            )
        answer = see_other("./")
        _set(request, answer, COOKIE, self._people.new_cookie(person))
        _set(request, answer, NAMESPACES, ".".join(names), max_age=A_YEAR if names else 0)
        return answer

    async def _sign_out(self, request: web.Request) -> web.Response:
        await self._people.sign_out(request.cookies.get(COOKIE, ""))
        answer = see_other("./")
        _set(request, answer, COOKIE, "", max_age=0)
        return answer

    async def _choose(self, request: web.Request) -> web.Response:
        names = bearer.namespaces((await fields_of(request)).get("namespaces", ""))
        answer = see_other("./")
        _set(request, answer, NAMESPACES, ".".join(names), max_age=A_YEAR if names else 0)
        return answer

    def _form(self, request: web.Request, problem: str, names: str = "") -> web.Response:
        names = names or ", ".join(_chosen(request))
        words = {"problem": problem, "namespaces": names, "usual": ", ".join(self._people.jobs.namespaces)}
        return whole(request, "sign_in.html", words, HTTPStatus.UNAUTHORIZED)


def _chosen(request: web.Request) -> tuple[str, ...]:
    try:
        return bearer.namespaces(request.cookies.get(NAMESPACES, "").replace(".", " "))
    except Usage:
        return ()  # a cookie that no page of ours has made


def _set(request: web.Request, answer: web.Response, name: str, value: str, **more: Any) -> None:
    """Set a cookie. Without a prefix from a proxy, the browser takes the path of the address as it sees it."""
    seen = as_seen(request, request.app[SETTINGS].proxies)
    path = f"{seen.prefix}{request.app[SETTINGS].base}/" if seen.prefix else ""
    is_secure = seen.scheme == "https"
    answer.set_cookie(name, value, path=path, httponly=True, samesite="Strict", secure=is_secure, **more)
