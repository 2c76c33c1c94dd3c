"""Leader election: of several operators one acts, and the others are ready to.

    leadership = Leadership(access, Candidate(new_identity(), namespace), on_lost=stop_writing)
    running = asyncio.create_task(leadership.run())
    await leadership.acquired()
    ...                              # before every write: leadership.is_current()
    leadership.hand_back()           # after the last write; then `await running`

Kubernetes has no fencing: a write is not refused because its author no longer leads. So whoever was stopped
(SIGSTOP, a frozen node) must find out by itself, before its next write: `is_current` reads a clock, not a flag.
"""

import asyncio
import logging
import random
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from tfyard import kube
from tfyard.errors import TfyardError
from tfyard.kube import Access, Client, Limits, requests
from tfyard.kube.requests import LEASES
from tfyard.model import Manifest

from .lease import DEFAULT_TERMS, Candidate, Observation, Terms, holder, transitions

log = logging.getLogger(__name__)

# CLOCK_MONOTONIC stands still while a machine sleeps, and whoever closed the lid would believe to lead still.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# Connections of its own: behind a thousand pod creations a renewal would wait for too long.
_LIMITS = Limits(connections=2, attempts=1)

# What may be over by itself. A 401: a server that restarts knows nobody, and who has no valid token now may get
# one. No credentials at all: a plugin that asks somebody else for them may fail once, or be slow.
_PASSING = (kube.Transient, kube.Unauthorized, kube.BadKubeconfig, kube.Undecodable, TimeoutError)


class ElectionRefused(TfyardError):
    """The server will not let us stand for election, and waiting did not help."""


def new_identity() -> str:
    """A pod's host name is its name, which tells a person where to look; the rest tells two lives apart."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def clock() -> float:
    return time.clock_gettime(_CLOCK)


class Leadership:
    def __init__(
        self,
        access: Access,
        candidate: Candidate,
        terms: Terms = DEFAULT_TERMS,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self.candidate, self.terms = candidate, terms
        self._access, self._on_lost = access, on_lost
        self._collection = LEASES.path(candidate.namespace)
        self._path = LEASES.path(candidate.namespace, candidate.name)
        self._held: Manifest | None = None
        self._renewed = 0.0
        self._trouble = ""
        self._refused_since: float | None = None
        self._others = Observation()
        self._leading, self._ending = asyncio.Event(), asyncio.Event()

    # --- what the operator asks

    def is_current(self) -> bool:
        """Whether a write may be sent now. Nothing can have taken over before the lease's duration is over."""
        return self._held is not None and not self._ending.is_set() and self._left() > 0

    async def acquired(self) -> None:
        """Returns once we lead; for ever a standby, it never does."""
        await self._leading.wait()

    @property
    def term(self) -> int:
        """Which reign this is: it changes only if somebody else led in between."""
        return transitions(self._held) if self._held else -1

    def hand_back(self) -> None:
        """From now on `is_current` is False; `run` gives the lease away and returns."""
        self._ending.set()

    async def run(self) -> None:
        """Stand, lead, stand again if that is lost, until `hand_back`. Cancelled, it gives nothing back."""
        async with Client(self._access, _LIMITS) as client:
            try:
                while not self._ending.is_set():
                    await self._campaign(client)
                    await self._lead(client)
                if self._held is not None:
                    await self._attempt(lambda: self._release(client), self.terms.attempt_timeout)
            finally:
                self._held = None
                self._leading.clear()

    # --- standing

    async def _campaign(self, client: Client) -> None:
        while not self._ending.is_set():
            await self._attempt(lambda: self._contend(client), self.terms.attempt_timeout)
            if self._held is not None:
                return
            waiting = self._others.free_in(clock(), self.terms.lease_duration)
            pause = self.terms.retry_period * random.uniform(1.0, 1.2)
            await self._pause(min(pause, waiting) if waiting else pause)

    async def _contend(self, client: Client) -> None:
        found, sent = await self._get(client), clock()
        self._others.look(found, sent)
        if found is not None and self.candidate.holds(found):
            pass  # we lost it in our own eyes only: nobody took it meanwhile
        elif self._others.free_in(sent, self.terms.lease_duration) > 0:
            return
        self._keep(await self._store(client, found), sent)
        self._leading.set()
        log.info("leads", extra={"identity": self.candidate.identity, "term": self.term})

    # --- leading

    async def _lead(self, client: Client) -> None:
        """The age is judged before each renewal: whoever wakes up from a stop must not write first."""
        while self._held is not None:
            await self._pause(min(self.terms.retry_period, max(self._left(), 0.0)))
            if self._ending.is_set():
                break
            if self._left() > 0:
                timeout = min(self.terms.attempt_timeout, self._left())
                await self._attempt(lambda: self._renew(client), timeout)
            else:
                reason = self._trouble or "this process stood still"
                self._lose(f"not renewed for {self.terms.renew_deadline:g} s: {reason}")

    async def _renew(self, client: Client) -> None:
        sent = clock()
        try:
            self._keep(await self._store(client, self._held), sent)
        except (kube.Conflict, kube.NotFound):
            await self._look_again(client)

    async def _look_again(self, client: Client) -> None:
        """Our copy is old. Either somebody else took the lease, or a renewal of ours was stored although its
        answer never came, or somebody put a label on it."""
        found, sent = await self._get(client), clock()
        if found is None or not self.candidate.holds(found):
            self._others.look(found, sent)
            self._lose(f"taken by {holder(found) or 'nobody'}" if found else "the lease was deleted")
        else:
            self._keep(await self._store(client, found), sent)

    async def _release(self, client: Client) -> None:
        """Only if the lease is as we left it: a stale copy of ours must not end somebody else's reign."""
        assert self._held is not None
        given = self.candidate.release(self._held, datetime.now(UTC))
        await client.send(requests.replace(self._path, given))
        log.info("handed back", extra={"identity": self.candidate.identity})

    def _keep(self, stored: Manifest, sent: float) -> None:
        """Counted from before the request was sent: that is the earliest moment at which others saw it."""
        self._held, self._renewed = stored, sent
        self._trouble = ""

    def _lose(self, reason: str) -> None:
        self._held = None
        self._leading.clear()
        log.warning("leads no longer: %s", reason, extra={"identity": self.candidate.identity})
        if self._on_lost is not None:
            self._on_lost(reason)

    def _left(self) -> float:
        return self._renewed + self.terms.renew_deadline - clock()

    # --- speaking with the server

    async def _get(self, client: Client) -> Manifest | None:
        try:
            found: Manifest = await client.send(requests.get(self._path))
        except kube.NotFound:
            return None
        return found

    async def _store(self, client: Client, found: Manifest | None) -> Manifest:
        """With the resourceVersion of what we read, so that of two candidates only one succeeds."""
        claimed = self.candidate.claim(found, self.terms, datetime.now(UTC))
        if found is None:
            request = requests.create(self._collection, claimed)
        else:
            request = requests.replace(self._path, claimed)
        stored: Manifest = await client.send(request)
        return stored

    async def _attempt(self, step: Callable[[], Awaitable[None]], timeout: float) -> None:
        """One step; if it fails, the next one looks at the world afresh."""
        try:
            async with asyncio.timeout(timeout):
                await step()
            self._refused_since, self._trouble = None, ""
        except (kube.Conflict, kube.AlreadyExists):
            self._trouble = "another candidate was faster"
        except _PASSING as problem:
            self._note(str(problem) or f"no answer within {timeout:.1f} s")
            self._refused_since = None
        except kube.Refused as refusal:
            self._note(str(refusal))
            self._consider(refusal)

    def _note(self, trouble: str) -> None:
        """Said once: a standby that can never lead must not be silent, nor speak every two seconds."""
        if trouble != self._trouble:
            log.warning("the lease is out of reach: %s", trouble, extra={"identity": self.candidate.identity})
        self._trouble = trouble

    def _consider(self, refusal: kube.Refused) -> None:
        """A restarted apiserver refuses everybody until it has read the roles: not at once the last word."""
        now = clock()
        self._refused_since = self._refused_since or now
        if now - self._refused_since < self.terms.renew_deadline:
            return
        where = self.candidate.namespace
        needs = f"get, create and update on leases.coordination.k8s.io in namespace {where}"
        if isinstance(refusal, kube.NotFound):
            needs = f"the namespace {where}, which must exist"
        raise ElectionRefused(f"no leader can be elected: {refusal}; it needs {needs}") from refusal

    async def _pause(self, seconds: float) -> None:
        """Until then, or until the end is wanted."""
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return
