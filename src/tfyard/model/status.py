"""What is stored of a job: what it shows, and what it must remember because its pods may be gone."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from .job import Dialect, GangScheduler, ServiceMode

ConditionType = Literal[
    "Created", "Running", "Restarting", "Succeeded", "Failed", "Suspended", "Blocked", "Waiting"
]


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


class TaskBackoff(Struct, frozen=True, rename="camel", kw_only=True):
    """Of a task whose attempts fail, or are taken away, one soon after the other."""

    failures: int
    """How many in a row."""
    until: datetime
    """The next attempt starts no earlier."""


class RoleMemory(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Sparse: a job of a thousand healthy tasks remembers nothing at all."""

    attempts: dict[str, int] = {}
    """Index -> how often its pod was given up. A pod's failure counts only if its attempt is this one."""
    finished: str = ""
    """Indexes that need not run again, compressed as Indexed Jobs do: `0-2,7`."""
    retries: int = 0
    """Restarts that count against the limit and whose pods are gone."""
    backoff: dict[str, TaskBackoff] = {}
    """Index -> how long it waits; of tasks that failed more than once in a row."""


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


LAST_WORDS = 512
"""Characters of an ending's message at most."""
ENDINGS_PER_TASK, ENDINGS_PER_JOB = 3, 20


class Ending(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """How an attempt at a task ended without success. Pods and events are soon gone; this stays."""

    task: str
    attempt: int
    """Which pod of the task it was, counted from 1."""
    restart: int = 0
    """Which restart in place of that pod's program it was; 0: its first run."""
    started: datetime | None = None
    finished: datetime | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    """The last lines that the program wrote, or the words of whoever ended it; the end of a longer text."""


class Status(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    replica_statuses: dict[str, RoleStatus] = {}
    restarts: int = 0
    """Of all roles: one column of `kubectl get`."""
    tasks: dict[str, RoleMemory] = {}
    cluster: Cluster | None = None
    failure: Failure | None = None
    endings: tuple[Ending, ...] = ()
    """The last ones, oldest first; of a job that goes well there are none."""
    start_time: datetime | None = None
    completion_time: datetime | None = None
    observed_generation: int | None = None

    def condition(self, type: str) -> Condition | None:
        """Of any type: other operators have some of their own."""
        return next((c for c in self.conditions if c.type == type), None)

    def has(self, type: ConditionType) -> bool:
        condition = self.condition(type)
        return condition is not None and condition.status == "True"

    @property
    def is_finished(self) -> bool:
        return self.has("Succeeded") or self.has("Failed")
