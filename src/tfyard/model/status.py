"""What is stored of a job: what it shows, and what it must remember because its pods may be gone."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from .job import Dialect, GangScheduler, ServiceMode


class Condition(Struct, frozen=True, rename="camel", omit_defaults=True):
    type: str
    status: Literal["True", "False"]
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None


class RoleStatus(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    restarts: int = 0
    ready: str = ""
    selector: str = ""


class RoleMemory(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Sparse: a job of a thousand healthy tasks remembers nothing at all."""

    attempts: dict[str, int] = {}
    """Index -> how often its pod was given up. A pod's failure counts only if its attempt is this one."""
    finished: str = ""
    """Indexes that need not run again, compressed as Indexed Jobs do: `0-2,7`."""
    retries: int = 0
    """Restarts that count against the limit and whose pods are gone."""


class Cluster(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Decided once: a restarted pod must list its peers as its peers list each other."""

    services: ServiceMode = "shared"
    domain: str = ""
    dialect: Dialect = "tf2"
    gang: GangScheduler | None = None
    """The gang scheduler of the pods: new members must use the same one as those that run already."""
    queued: int = 0
    """How many pods Kueue was told to wait for; 0: it does not queue this job's pods."""


class Failure(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    cause: Literal["TaskFailed", "BackoffLimitExceeded", "DeadlineExceeded", "InvalidSpec"]
    task: str = ""
    exit_code: int | None = None
    message: str = ""


class Status(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    replica_statuses: dict[str, RoleStatus] = {}
    restarts: int = 0
    """Of all roles: one column of `kubectl get`."""
    tasks: dict[str, RoleMemory] = {}
    cluster: Cluster | None = None
    failure: Failure | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    observed_generation: int | None = None

    def condition(self, type: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == type), None)

    def has(self, type: str) -> bool:
        condition = self.condition(type)
        return condition is not None and condition.status == "True"

    @property
    def is_finished(self) -> bool:
        return self.has("Succeeded") or self.has("Failed")
