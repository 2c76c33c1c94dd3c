"""The content of a Lease, and what a candidate may conclude from it. Pure: the time is an argument.

Clocks of two machines are never compared: nodes may be minutes apart. A standby measures on its own clock how long
the record has not changed, and the holder measures on its own clock how long ago it last wrote it.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from tfyard.errors import Usage
from tfyard.kube.times import micro_time
from tfyard.model import Manifest
from tfyard.model.names import LEASE_NAME

Spec = Mapping[str, Any]


class LeaseTiming(Struct, frozen=True):
    """Times in seconds. To change the lease's length, change the defaults.

    The leader stops acting `renew_deadline` after its last renewal was *sent*; a standby takes over
    `lease_duration` after it *saw* that renewal, which is later. A write that is already on its way may
    take as long as the difference.
    """

    lease_duration: float = 10.0
    renew_deadline: float = 7.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > 2 * self.retry_period > 0:
            raise Usage(
                "leader election needs lease duration > renew deadline > 2 × retry period > 0; these are "
                f"{self.lease_duration:g}, {self.renew_deadline:g} and {self.retry_period:g} s"
            )

    @property
    def attempt_timeout(self) -> float:
        """Timeout of one request: if it hangs on a half-open connection, there must be time for another one."""
        return self.renew_deadline / 2


DEFAULT_TIMING = LeaseTiming()
LONGEST_PROMISE = 60.0
"""Maximum duration in seconds that is accepted from a lease. Users can edit a lease: without a limit, a duration
of a day would leave the cluster without a leader for a day after its holder has ended."""


MOST_TRANSITIONS = 1 << 31
"""The number after the greatest that the server stores, which users may write: the next is 0."""


class Candidate(Struct, frozen=True):
    """An operator that tries to get the lease."""

    identity: str
    namespace: str
    name: str = LEASE_NAME

    def holds(self, lease: Manifest) -> bool:
        return holder(lease) == self.identity

    def claim(self, stored: Manifest | None, timing: LeaseTiming, now: datetime) -> Manifest:
        """The lease with this candidate as its holder; a renewal if it is the holder already."""
        lease = stored or self._new()
        spec: Spec = lease.get("spec") or {}
        ours = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(timing.lease_duration),
            "renewTime": micro_time(now),
        }
        if not self.holds(lease):
            ours["acquireTime"] = ours["renewTime"]
            ours["leaseTransitions"] = (transitions(lease) + (1 if stored else 0)) % MOST_TRANSITIONS
        return {**lease, "spec": {**spec, **ours}}

    def release(self, lease: Manifest, now: datetime) -> Manifest:
        """The lease without a holder: the next candidate that looks takes it at once."""
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        return {**lease, "spec": {**spec, "renewTime": micro_time(now)}}

    def _new(self) -> Manifest:
        metadata = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}


class Observation:
    """The lease as a candidate last saw it, and since when it has not changed."""

    def __init__(self) -> None:
        self._spec: Spec | None = None
        self._is_deleted = False
        self.since = 0.0
        """Time of the spec's last change, on the candidate's own clock."""

    def update(self, lease: Manifest | None, now: float) -> None:
        """Only a changed spec shows that the holder is alive: users may change labels and annotations.

        A deleted lease is not free at once: its holder may still write until it tries to renew.
        """
        self._is_deleted = lease is None
        if lease is not None and (spec := lease.get("spec") or {}) != self._spec:
            self._spec, self.since = spec, now

    def free_in(self, now: float, fallback: float) -> float:
        """Seconds until the lease may be taken; 0: now. The lease's own duration counts, up to a limit; `fallback`
        for a deleted lease."""
        if not self._spec or not self._spec.get("holderIdentity"):
            return 0.0
        written = float(self._spec.get("leaseDurationSeconds") or fallback)
        duration = min(written, fallback if self._is_deleted else LONGEST_PROMISE)
        return max(0.0, self.since + duration - now)


class _KnownSpec(Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _KnownLease(Struct, frozen=True):
    spec: _KnownSpec | None = None


def check(lease: Manifest) -> None:
    """Raises msgspec.ValidationError if a field that candidates read has a wrong type."""
    msgspec.convert(lease, _KnownLease)


def holder(lease: Manifest) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def transitions(lease: Manifest) -> int:
    return int((lease.get("spec") or {}).get("leaseTransitions") or 0)
