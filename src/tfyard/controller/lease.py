"""What a Lease says, and what a candidate may conclude from it. Pure: the time is an argument.

Clocks of two machines are never compared: nodes may be minutes apart. A standby measures on its own clock how long
the record has not changed, and the holder measures on its own clock how long ago it last wrote it.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.kube.times import micro_time
from tfyard.model import Manifest
from tfyard.model.names import LEASE_NAME

Spec = Mapping[str, Any]


class LeaseTiming(Struct, frozen=True):
    """In seconds. To change the lease's length, change the defaults here.

    The leader stops acting `renew_deadline` after its last renewal was *sent*; a standby takes over
    `lease_duration` after it *saw* that renewal, which is later. The difference is the room for a write
    that is already on its way.
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
        """Of one request: one that hangs on a half-open connection must leave time for another one."""
        return self.renew_deadline / 2


DEFAULT_TIMING = LeaseTiming()


class Candidate(Struct, frozen=True):
    """An operator that wants the lease."""

    identity: str
    namespace: str
    name: str = LEASE_NAME

    def holds(self, lease: Manifest) -> bool:
        return holder(lease) == self.identity

    def claim(self, found: Manifest | None, timing: LeaseTiming, now: datetime) -> Manifest:
        """The lease as it should be stored: ours from now on. A renewal if it is ours already."""
        lease = found or self._new()
        spec: Spec = lease.get("spec") or {}
        ours = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(timing.lease_duration),
            "renewTime": micro_time(now),
        }
        if not self.holds(lease):
            ours["acquireTime"] = ours["renewTime"]
            ours["leaseTransitions"] = transitions(lease) + (1 if found else 0)
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
        self._since = 0.0

    def update(self, lease: Manifest | None, now: float) -> None:
        """Only a changed spec shows that the holder is alive: anybody may change labels and annotations.

        A lease that is deleted changes nothing: its holder may still act, until it tries to renew.
        """
        if lease is not None and (spec := lease.get("spec") or {}) != self._spec:
            self._spec, self._since = spec, now

    def free_in(self, now: float, fallback: float) -> float:
        """Seconds until the lease may be taken; 0: now. The holder's own duration counts, not ours."""
        if not self._spec or not self._spec.get("holderIdentity"):
            return 0.0
        promised = self._spec.get("leaseDurationSeconds") or fallback
        return max(0.0, self._since + float(promised) - now)


def holder(lease: Manifest) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def transitions(lease: Manifest) -> int:
    return int((lease.get("spec") or {}).get("leaseTransitions") or 0)
