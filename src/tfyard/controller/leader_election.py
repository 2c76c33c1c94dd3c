"""Leader election: one of several operators is the leader, and the others are standbys.

    leadership = Leadership(access, Candidate(new_identity(), namespace))
    running = asyncio.create_task(leadership.run())
    ...                              # before every write: leadership.is_current()
    leadership.release()             # after the last write; then `await running`

Kubernetes has no fencing: it does not refuse a write of a process that is no longer the leader. So a process that
was stopped (SIGSTOP, a frozen node) must find out by itself, before its next write: `is_current` reads a clock,
not a flag.
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

import msgspec

from tfyard import kube
from tfyard.errors import TfyardError
from tfyard.install.permissions import of_lease
from tfyard.kube import Access, Client, Limits, requests
from tfyard.kube.requests import LEASES
from tfyard.model import Manifest

from .lease import DEFAULT_TIMING, Candidate, LeaseTiming, Observation, check, holder, transitions

log = logging.getLogger(__name__)

# CLOCK_MONOTONIC stops while a machine is suspended, and the operator would still believe to be the leader.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# Connections of its own: behind a thousand creates of pods a renewal would wait for too long.
_LIMITS = Limits(connections=2, attempts=1)

# Failures that may pass. A 401: a server that restarts rejects all credentials, and a token may be renewed. No
# credentials at all: an exec plugin may fail once, or be slow.
_TRANSIENT = (kube.Transient, kube.Unauthorized, kube.BadKubeconfig, kube.Undecodable, TimeoutError)


NO_LEADER = 30.0
"""Seconds without a live leader after which that is reported: three times the default lease duration."""


class ElectionRefused(TfyardError):
    """The server refuses access to the lease, and waiting did not help."""


def new_identity() -> str:
    """A name that begins with the pod's and differs from those of earlier processes in the pod."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def clock() -> float:
    return time.clock_gettime(_CLOCK)


class LeaseApi:
    """The requests of one candidate for one lease."""

    def __init__(self, client: Client, candidate: Candidate, timing: LeaseTiming) -> None:
        self._client, self._candidate, self._timing = client, candidate, timing
        self._collection = LEASES.path(candidate.namespace)
        self._path = LEASES.path(candidate.namespace, candidate.name)

    async def get(self) -> Manifest | None:
        try:
            lease: Manifest = await self._client.send(requests.get(self._path))
            check(lease)
        except kube.NotFound:
            return None
        except msgspec.ValidationError as problem:
            raise kube.Undecodable(f"the lease cannot be read: {problem}", b"") from problem
        return lease

    async def claim(self, lease: Manifest | None) -> Manifest:
        """Claim the lease with the resourceVersion that was read: of two candidates only one succeeds."""
        claimed = self._candidate.claim(lease, self._timing, datetime.now(UTC))
        if lease is None:
            request = requests.create(self._collection, claimed)
        else:
            request = requests.replace(self._path, claimed)
        stored: Manifest = await self._client.send(request)
        return stored

    async def release(self, held: Manifest) -> None:
        """Release the lease if it is unchanged: a stale copy must not end another operator's leadership."""
        released = self._candidate.release(held, datetime.now(UTC))
        await self._client.send(requests.replace(self._path, released))


class Attempts:
    """Runs one step after the other; if one fails, the next one reads the lease again. `trouble` is the last
    failure. If the server refuses for too long, ElectionRefused is raised."""

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
        """Log a failure once: a standby must neither be silent nor log every two seconds."""
        if trouble != self.trouble:
            identity = {"identity": self._candidate.identity}
            log.warning("cannot reach the lease: %s (retrying)", trouble, extra=identity)
        self.trouble = trouble

    def _give_up(self, refusal: kube.Refused) -> None:
        """Raise ElectionRefused, but not at once: a restarted apiserver must read the roles first."""
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
        self._renewed, self._began = 0.0, clock()
        self._others = Observation()
        self._attempts = Attempts(candidate, timing.renew_deadline)
        self._ending = asyncio.Event()
        self._logged_absence = False
        self._identity = {"identity": candidate.identity}

    def is_current(self) -> bool:
        """Whether a write may be sent now: no standby takes over before the lease's duration is over."""
        return self._held is not None and not self._ending.is_set() and self._left() > 0

    def seconds_without_leader(self) -> float:
        """Seconds since a live leader was last seen, this operator or another: a leader keeps changing its
        lease."""
        return 0.0 if self.is_current() else clock() - max(self._others.since, self._renewed, self._began)

    @property
    def term(self) -> int:
        """The lease's number of transitions: it changes only if another operator was the leader in between."""
        return transitions(self._held) if self._held else -1

    def release(self) -> None:
        """Make `is_current` False from now on, and let `run` release the lease and return."""
        self._ending.set()

    async def run(self) -> None:
        """Acquire the lease, renew it, acquire it again if it is lost, until `release`. If cancelled, the lease is
        not released."""
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

    async def _acquire(self, lease: LeaseApi) -> None:
        while not self._ending.is_set():
            await self._attempts.run(partial(self._try_acquire, lease), self.timing.attempt_timeout)
            if self._held is not None:
                return
            self._log_absence()
            waiting = self._others.free_in(clock(), self.timing.lease_duration)
            pause = self.timing.retry_period * random.uniform(1.0, 1.2)
            await self._pause(min(pause, waiting) if waiting else pause)

    def _log_absence(self) -> None:
        """Log once per absence that there is no leader."""
        seconds = self.seconds_without_leader()
        if seconds > NO_LEADER and not self._logged_absence:
            log.warning("no leader for %d s: the lease does not change", seconds, extra=self._identity)
        self._logged_absence = seconds > NO_LEADER

    async def _try_acquire(self, lease: LeaseApi) -> None:
        stored, sent = await lease.get(), clock()
        self._others.update(stored, sent)
        if stored is not None and self.candidate.holds(stored):
            pass  # leadership was given up because of its age, but no other operator took the lease
        elif self._others.free_in(sent, self.timing.lease_duration) > 0:
            return
        self._hold(await lease.claim(stored), sent)
        log.info("became leader", extra={**self._identity, "term": self.term})

    async def _keep_renewing(self, lease: LeaseApi) -> None:
        """Renew the lease while it is young enough: a process that was stopped must not renew it."""
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
        """Read the lease again when the copy here is out of date: another operator took it, or the answer to a
        renewal got lost, or a user put a label on it."""
        stored, sent = await lease.get(), clock()
        if stored is None or not self.candidate.holds(stored):
            self._others.update(stored, sent)
            taken = (
                f"taken by {holder(stored)}" if stored and holder(stored) else "released by another client"
            )
            self._lose(taken if stored else "the lease was deleted")
        else:
            self._hold(await lease.claim(stored), sent)

    async def _give_away(self, lease: LeaseApi) -> None:
        assert self._held is not None
        await lease.release(self._held)
        log.info("released the lease", extra=self._identity)

    def _hold(self, stored: Manifest, sent: float) -> None:
        """Keep the stored lease. Its age counts from before the request: others cannot have seen it earlier."""
        self._held, self._renewed = stored, sent

    def _lose(self, reason: str) -> None:
        self._held = None
        log.warning("lost leadership: %s", reason, extra=self._identity)
        if self._on_lost is not None:
            self._on_lost(reason)

    def _left(self) -> float:
        """Seconds until this operator must not write any more."""
        return self._renewed + self.timing.renew_deadline - clock()

    async def _pause(self, seconds: float) -> None:
        """Wait so many seconds, or until `release`."""
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return
