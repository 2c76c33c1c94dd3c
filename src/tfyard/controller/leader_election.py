"""Leader election: one of several operators acts, and the others are standbys.

    leadership = Leadership(access, Candidate(new_identity(), namespace))
    running = asyncio.create_task(leadership.run())
    await leadership.acquired()
    ...                              # before every write: leadership.is_current()
    leadership.release()             # after the last write; then `await running`

Kubernetes has no fencing: a write is not refused because its author is no longer the leader. So a process that was
stopped (SIGSTOP, a frozen node) must find out by itself, before its next write: `is_current` reads a clock, not a
flag.
"""

import asyncio
import logging
import random
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

from tfyard import kube
from tfyard.errors import TfyardError
from tfyard.install.permissions import of_lease
from tfyard.kube import Access, Client, Limits, requests
from tfyard.kube.requests import LEASES
from tfyard.model import Manifest

from .lease import DEFAULT_TIMING, Candidate, LeaseTiming, Observation, holder, transitions

log = logging.getLogger(__name__)

# CLOCK_MONOTONIC stops while a machine is suspended, and the operator would still believe to be the leader.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# Connections of its own: behind a thousand creates of pods a renewal would wait for too long.
_LIMITS = Limits(connections=2, attempts=1)

# Failures that may pass. A 401: a server that restarts authenticates nobody, and a token may be renewed. No
# credentials at all: an exec plugin may fail once, or be slow.
_TRANSIENT = (kube.Transient, kube.Unauthorized, kube.BadKubeconfig, kube.Undecodable, TimeoutError)


class ElectionRefused(TfyardError):
    """The server refuses access to the lease, and waiting did not help."""


def new_identity() -> str:
    """A pod's host name is its name, for people; the rest distinguishes it from an earlier process there."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def clock() -> float:
    return time.clock_gettime(_CLOCK)


class LeaseApi:
    """The requests for one lease, in the name of one candidate."""

    def __init__(self, client: Client, candidate: Candidate, timing: LeaseTiming) -> None:
        self._client, self._candidate, self._timing = client, candidate, timing
        self._collection = LEASES.path(candidate.namespace)
        self._path = LEASES.path(candidate.namespace, candidate.name)

    async def get(self) -> Manifest | None:
        try:
            found: Manifest = await self._client.send(requests.get(self._path))
        except kube.NotFound:
            return None
        return found

    async def claim(self, found: Manifest | None) -> Manifest:
        """With the resourceVersion of what we read, so that of two candidates only one succeeds."""
        claimed = self._candidate.claim(found, self._timing, datetime.now(UTC))
        if found is None:
            request = requests.create(self._collection, claimed)
        else:
            request = requests.replace(self._path, claimed)
        stored: Manifest = await self._client.send(request)
        return stored

    async def release(self, held: Manifest) -> None:
        """Only if the lease is as we left it: a stale copy must not end another operator's leadership."""
        released = self._candidate.release(held, datetime.now(UTC))
        await self._client.send(requests.replace(self._path, released))


class Attempts:
    """Runs one step after the other; if one fails, the next one reads the lease again. `trouble` says what went
    wrong; if the server refuses for too long, that is an error."""

    def __init__(self, candidate: Candidate, give_up_after: float) -> None:
        self._candidate, self._give_up_after = candidate, give_up_after
        self._refused_since: float | None = None
        self.trouble = ""

    async def run(self, step: Callable[[], Awaitable[None]], timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await step()
            self._refused_since, self.trouble = None, ""
        except (kube.Conflict, kube.AlreadyExists):
            self.trouble = "another candidate was faster"
        except _TRANSIENT as problem:
            self._log(str(problem) or f"no answer within {timeout:.1f} s")
            self._refused_since = None
        except kube.Refused as refusal:
            self._log(str(refusal))
            self._give_up(refusal)

    def _log(self, trouble: str) -> None:
        """Once: a standby that can never become the leader must not be silent, nor log every two seconds."""
        if trouble != self.trouble:
            identity = {"identity": self._candidate.identity}
            log.warning("cannot reach the lease: %s (retrying)", trouble, extra=identity)
        self.trouble = trouble

    def _give_up(self, refusal: kube.Refused) -> None:
        """Not at once: a restarted apiserver refuses everybody until it has read the roles."""
        now = clock()
        self._refused_since = self._refused_since or now
        if now - self._refused_since < self._give_up_after:
            return
        namespace = self._candidate.namespace
        needs = f"the permission to {of_lease(namespace)}"
        if isinstance(refusal, kube.NotFound):
            needs = f"the namespace {namespace}, which must exist"
        raise ElectionRefused(f"no leader election: {refusal}; it needs {needs}") from refusal


class Leadership:
    def __init__(
        self,
        access: Access,
        candidate: Candidate,
        timing: LeaseTiming = DEFAULT_TIMING,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self.candidate, self.timing = candidate, timing
        self._access, self._on_lost = access, on_lost
        self._held: Manifest | None = None
        self._renewed = 0.0
        self._others = Observation()
        self._attempts = Attempts(candidate, timing.renew_deadline)
        self._leading, self._ending = asyncio.Event(), asyncio.Event()
        self._identity = {"identity": candidate.identity}

    def is_current(self) -> bool:
        """Whether a write may be sent now. Nobody can have taken over before the lease's duration is over."""
        return self._held is not None and not self._ending.is_set() and self._left() > 0

    async def acquired(self) -> None:
        """Returns when this operator becomes the leader."""
        await self._leading.wait()

    @property
    def term(self) -> int:
        """The lease's number of transitions: it changes only if another operator was the leader in between."""
        return transitions(self._held) if self._held else -1

    def release(self) -> None:
        """From now on `is_current` is False; `run` releases the lease and returns."""
        self._ending.set()

    async def run(self) -> None:
        """Acquire the lease, renew it, acquire it again if it is lost, until `release`. Cancelled, it releases
        nothing."""
        async with Client(self._access, _LIMITS) as client:
            lease = LeaseApi(client, self.candidate, self.timing)
            try:
                while not self._ending.is_set():
                    await self._acquire(lease)
                    await self._keep_renewing(lease)
                if self._held is not None:
                    await self._attempts.run(partial(self._give_away, lease), self.timing.attempt_timeout)
            finally:
                self._held = None
                self._leading.clear()

    async def _acquire(self, lease: LeaseApi) -> None:
        while not self._ending.is_set():
            await self._attempts.run(partial(self._try_acquire, lease), self.timing.attempt_timeout)
            if self._held is not None:
                return
            waiting = self._others.free_in(clock(), self.timing.lease_duration)
            pause = self.timing.retry_period * random.uniform(1.0, 1.2)
            await self._pause(min(pause, waiting) if waiting else pause)

    async def _try_acquire(self, lease: LeaseApi) -> None:
        found, sent = await lease.get(), clock()
        self._others.update(found, sent)
        if found is not None and self.candidate.holds(found):
            pass  # we gave it up too early: nobody took it meanwhile
        elif self._others.free_in(sent, self.timing.lease_duration) > 0:
            return
        self._hold(await lease.claim(found), sent)
        self._leading.set()
        log.info("became leader", extra={**self._identity, "term": self.term})

    async def _keep_renewing(self, lease: LeaseApi) -> None:
        """The age is checked before each renewal: a process that was stopped must not write first."""
        while self._held is not None:
            await self._pause(min(self.timing.retry_period, max(self._left(), 0.0)))
            if self._ending.is_set():
                break
            if self._left() > 0:
                timeout = min(self.timing.attempt_timeout, self._left())
                await self._attempts.run(partial(self._renew, lease), timeout)
            else:
                reason = self._attempts.trouble or "this process was stopped"
                self._lose(f"not renewed for {self.timing.renew_deadline:g} s: {reason}")

    async def _renew(self, lease: LeaseApi) -> None:
        sent = clock()
        try:
            self._hold(await lease.claim(self._held), sent)
        except (kube.Conflict, kube.NotFound):
            await self._refresh(lease)

    async def _refresh(self, lease: LeaseApi) -> None:
        """Our copy is old: another operator took the lease, or our renewal was stored but its answer got lost, or
        somebody put a label on it."""
        found, sent = await lease.get(), clock()
        if found is None or not self.candidate.holds(found):
            self._others.update(found, sent)
            self._lose(f"taken by {holder(found) or 'nobody'}" if found else "the lease was deleted")
        else:
            self._hold(await lease.claim(found), sent)

    async def _give_away(self, lease: LeaseApi) -> None:
        assert self._held is not None
        await lease.release(self._held)
        log.info("released the lease", extra=self._identity)

    def _hold(self, stored: Manifest, sent: float) -> None:
        """Its age counts from before the request was sent: others cannot have seen it earlier."""
        self._held, self._renewed = stored, sent

    def _lose(self, reason: str) -> None:
        self._held = None
        self._leading.clear()
        log.warning("lost leadership: %s", reason, extra=self._identity)
        if self._on_lost is not None:
            self._on_lost(reason)

    def _left(self) -> float:
        """Seconds until this operator must not write any more."""
        return self._renewed + self.timing.renew_deadline - clock()

    async def _pause(self, seconds: float) -> None:
        """Until then, or until `release`."""
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return
