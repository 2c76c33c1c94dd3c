"""The people of a page in the cluster: each is who their token proves. What was read with one token is kept with
it, and is shown to nobody else; all of it goes when the token ends, is refused, or is not used any more."""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from tfyard import aio
from tfyard.dashboard import bearer
from tfyard.dashboard.bearer import Bearer
from tfyard.dashboard.viewer import Busy, Viewer
from tfyard.errors import TfyardError
from tfyard.kube import ClusterEntry

CHECKS_AT_ONCE = 8
MOST_COOKIES, MOST_VIEWERS = 8, 3
"""Browsers in which one token can be signed in, and choices of namespaces that are kept for it."""


class SessionLimits(Struct, frozen=True, kw_only=True):
    people: int = 100
    idle: float = 1800.0
    """Seconds after the last request; an open page counts as a request that goes on."""
    longest: float = 12 * 3600.0
    check: float = 300.0
    """Seconds after which the server is asked again whether it still accepts the token."""
    sweep: float = 10.0


class OfferedJobs(Struct, frozen=True, kw_only=True):
    """The cluster and the namespaces whose jobs a page in the cluster shows."""

    cluster: ClusterEntry
    namespaces: tuple[str, ...] = ()
    """Namespaces that are shown to users who name none."""
    selector: str = ""


class Person:
    """A token, and everything that was read with it."""

    def __init__(self, jobs: OfferedJobs, found: Bearer, limits: SessionLimits) -> None:
        self._jobs, self.bearer, self._limits = jobs, found, limits
        self.checked = time.monotonic()
        self._until = self.checked + min(limits.longest, bearer.lasts(found.token))
        self._used = self.checked
        self._viewers: OrderedDict[tuple[str, ...], Viewer] = OrderedDict()
        self.cookies: list[bytes] = []

    async def viewer(self, chosen: Sequence[str]) -> Viewer:
        """The viewer of this person for these namespaces; none: for the default ones."""
        names = tuple(chosen) or self._jobs.namespaces or (self.bearer.own_namespace or "default",)
        self._used = time.monotonic()
        if names not in self._viewers:
            identity = bearer.identity(self._jobs.cluster, self.bearer, names, self._jobs.selector)
            self._viewers[names] = Viewer(identity)
            if len(self._viewers) > MOST_VIEWERS:
                await self._viewers.popitem(last=False)[1].close()
        self._viewers.move_to_end(names)
        return self._viewers[names]

    @property
    def idle(self) -> float:
        """Seconds since the last request ended; 0: a request is in progress."""
        if any(each.requests for each in self._viewers.values()):
            self._used = time.monotonic()
            return 0.0
        return time.monotonic() - self._used

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until or self.idle > self._limits.idle

    @property
    def is_to_check(self) -> bool:
        has_trouble = any(
            each.problem for viewer in self._viewers.values() for each in viewer.board.freshness
        )
        every = min(self._limits.check, self._limits.sweep) if has_trouble else self._limits.check
        return time.monotonic() - self.checked > every

    def has(self, viewer: Viewer) -> bool:
        return viewer in self._viewers.values()

    async def close(self) -> None:
        viewers, self._viewers = list(self._viewers.values()), OrderedDict()
        await asyncio.gather(*(each.close() for each in viewers))


class People:
    """The people who are signed in. Tokens and cookies are looked up by their hashes, so timing reveals nothing
    about them."""

    def __init__(self, jobs: OfferedJobs, limits: SessionLimits) -> None:
        self.jobs, self._limits = jobs, limits
        self._known: dict[bytes, Person] = {}
        self._checks: dict[bytes, asyncio.Task[Person | None]] = {}
        self._cookies: dict[bytes, bytes] = {}
        self._slots = asyncio.Semaphore(CHECKS_AT_ONCE)
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        self._sweeper.cancel()
        tasks = [self._sweeper, *self._checks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for key in list(self._known):
            await self._forget(key)

    def __len__(self) -> int:
        return len(self._known)

    # --- found

    def of_cookie(self, cookie: str) -> Person | None:
        person = self._known.get(self._cookies.get(_hash(cookie), b""))
        return None if person is None or person.is_over else person

    async def of_token(self, token: str) -> Person | None:
        """The person with this token; None: the server does not accept it. The server is asked once per token."""
        key = _hash(token)
        if (known := self._known.get(key)) and not known.is_over:
            return known
        if not bearer.is_token(token):
            return None
        if key not in self._checks:
            self._checks[key] = asyncio.create_task(self._check(key, token))
        return await asyncio.shield(self._checks[key])

    async def _check(self, key: bytes, token: str) -> Person | None:
        try:
            async with self._slots:
                found = await aio.in_thread(bearer.ask, self.jobs.cluster, token)
            if found is None or bearer.lasts(token) <= 0:
                return None
            await self._forget(key)
            await self._make_room()
            person = self._known[key] = Person(self.jobs, found, self._limits)
            return person
        finally:
            del self._checks[key]

    async def _make_room(self) -> None:
        while len(self._known) >= self._limits.people:
            key = max(self._known, key=lambda each: self._known[each].idle)
            if not self._known[key].idle:
                raise Busy(f"{len(self._known)} people look at this page now: it serves no more at once")
            await self._forget(key)

    # --- cookies

    def new_cookie(self, person: Person) -> str:
        cookie = secrets.token_urlsafe(32)
        self._cookies[_hash(cookie)] = _hash(person.bearer.token)
        person.cookies.append(_hash(cookie))
        for old in person.cookies[:-MOST_COOKIES]:
            self._cookies.pop(old, None)
        person.cookies = person.cookies[-MOST_COOKIES:]
        return cookie

    async def sign_out(self, cookie: str) -> None:
        """Delete the cookie, and with the last one of a token everything that was read with it."""
        key = self._cookies.pop(_hash(cookie), b"")
        if person := self._known.get(key):
            person.cookies.remove(_hash(cookie))
            if not person.cookies:
                await self._forget(key)

    # --- ends

    async def refuse(self, viewer: Viewer) -> None:
        """The server has refused the token of this viewer."""
        for key, person in list(self._known.items()):
            if person.has(viewer):
                await self._forget(key)

    async def _forget(self, key: bytes) -> None:
        if person := self._known.pop(key, None):
            for cookie in person.cookies:
                self._cookies.pop(cookie, None)
            await person.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._limits.sweep)
            await asyncio.gather(*(self._look_at(key) for key in list(self._known)))

    async def _look_at(self, key: bytes) -> None:
        person = self._known.get(key)
        if person is None:  # signed out before it was their turn
            return
        if person.is_over or (person.is_to_check and not await self._is_still_accepted(person)):
            await self._forget(key)

    async def _is_still_accepted(self, person: Person) -> bool:
        """Whether the server accepts the token. If it does not answer, the token stays: the page says how old
        its data is."""
        person.checked = time.monotonic()
        try:
            async with self._slots:
                return await aio.in_thread(bearer.ask, self.jobs.cluster, person.bearer.token) is not None
        except TfyardError:
            return True


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()
