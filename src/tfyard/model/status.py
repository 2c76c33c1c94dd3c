"""The stored status of a job: what users see, and what the planner must remember after pods are gone."""

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from .job import Dialect, GangScheduler, ServiceMode

ConditionType = Literal[
    "Created", "Running", "Restarting", "Succeeded", "Failed", "Suspended", "Blocked", "Waiting", "Stalled"
]
NAME_TAKEN: Final = "NameTaken"
"""Reason of the condition Blocked: other objects have names that the job needs."""
DEADLINE_CODE: Final = 124
"""Exit code of a job at its deadline, as of `timeout`."""


Time = Annotated[datetime, Meta(tz=True)]
"""A time that can be compared with others: servers write all of them with a zone."""


class Condition(Struct, frozen=True, rename="camel", omit_defaults=True):
    type: str
    status: Literal["True", "False"]
    reason: str = ""
    message: str = ""
    last_update_time: Time | None = None
    last_transition_time: Time | None = None


class RoleStatus(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    restarts: int = 0
    ready: str = ""
    selector: str = ""

    @property
    def size(self) -> int:
        """Number of the role's tasks when the status was written, from `ready`; 0 if it does not tell."""
        _, _, size = self.ready.partition("/")
        return int(size) if size.isdecimal() else 0


class TaskBackoff(Struct, frozen=True, rename="camel", kw_only=True):
    """How long a task waits whose last attempts failed, or were disrupted, in quick succession."""

    failures: int
    """Number of such attempts in a row."""
    until: Time
    """The next attempt starts no earlier."""


class RoleMemory(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What is remembered of a role's tasks. It is sparse: for a thousand healthy tasks it is empty."""

    attempts: dict[str, int] = {}
    """Task index -> number of pods that were replaced. A pod's failure counts only if its attempt equals this."""
    finished: str = ""
    """Indexes of finished tasks, compressed as in Indexed Jobs: `0-2,7`."""
    retries: int = 0
    """Restarts that count against the limit and whose pods are gone."""
    excused: dict[str, tuple[str, ...]] = {}
    """Index -> the restarts in place of its present pod that do not count, because its node or the loss of another
    task caused them. A pod shows only the last end of each container."""
    backoff: dict[str, TaskBackoff] = {}
    """Task index -> its back-off; only tasks that failed more than once in a row have one."""


class Disruption(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The last time that tasks were taken away: others may fail because of it, and are then not at fault."""

    tasks: tuple[str, ...]
    """The tasks that were taken away; of many, the first."""
    since: Time
    recovered: Time | None = None
    """When all tasks ran again; None: not yet, or all were started again."""
    restarted: bool = False
    """Whether all tasks were started again because of the disruption. What fails from then on fails by itself."""
    restarts: dict[str, int] = {}
    """Task -> its restarts in place that counted already; only of tasks that had some."""
    forgiven: tuple[str, ...] = ()
    """Tasks that were restarted in place after it, at no retry."""


class Cluster(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The job's setup, decided once and kept: a restarted pod must list its peers as its peers list each other."""

    services: ServiceMode = "shared"
    domain: str = ""
    dialect: Dialect = "tf2"
    gang: GangScheduler | None = None
    """The gang scheduler: new pods must use the same one as the pods that already run."""
    queued: int = 0
    """Number of pods in the group that Kueue queues; 0: Kueue does not queue this job's pods."""


class Failure(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    cause: Literal["TaskFailed", "BackoffLimitExceeded", "DeadlineExceeded", "InvalidSpec"]
    task: str = ""
    exit_code: int | None = None
    message: str = ""


LONGEST_MESSAGE = 1024
"""Maximum length of what is said of a job, in characters: in conditions, events and logs. The server refuses
events with more, and users can write half a megabyte into a name that a message quotes."""
LAST_WORDS = 512
"""Maximum length of an ending's message, in characters."""
ENDINGS_PER_TASK, ENDINGS_PER_JOB = 3, 20


def shortened(text: str, most: int = LONGEST_MESSAGE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Ending(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """How an attempt at a task ended without success. It is kept here because pods and events are soon gone."""

    task: str
    attempt: int
    """Number of the task's pod, counted from 1."""
    restart: int = 0
    """Number of the restart in place within that pod; 0: the program's first run."""
    started: Time | None = None
    finished: Time | None = None
    exit_code: int | None = None
    container: str = ""
    """The init container that failed, so that the program did not start; empty: it is the program's own end."""
    reason: str = ""
    message: str = ""
    """The program's last lines, or the message of the component that ended the pod; the end of a long text."""
    peer: str = ""
    """The tasks that were taken away before, if the attempt ended because of that."""


class Status(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    replica_statuses: dict[str, RoleStatus] = {}
    restarts: int = 0
    """Sum over all roles, for a column of `kubectl get`."""
    tasks: dict[str, RoleMemory] = {}
    cluster: Cluster | None = None
    failure: Failure | None = None
    endings: tuple[Ending, ...] = ()
    """The last endings, oldest first; empty while no attempt has failed."""
    disruption: Disruption | None = None
    start_time: Time | None = None
    completion_time: Time | None = None
    observed_generation: int | None = None

    def condition(self, type: str) -> Condition | None:
        """The condition of this type, which may be one that another operator writes."""
        return next((c for c in self.conditions if c.type == type), None)

    def has(self, type: ConditionType) -> bool:
        condition = self.condition(type)
        return condition is not None and condition.status == "True"

    @property
    def is_finished(self) -> bool:
        return self.has("Succeeded") or self.has("Failed")

    @property
    def exit_code(self) -> int | None:
        """Exit code of the job, as commands and records show it; None: it has not finished."""
        if self.has("Succeeded"):
            return 0
        if self.failure is None:
            return 1 if self.has("Failed") else None
        return DEADLINE_CODE if self.failure.cause == "DeadlineExceeded" else self.failure.exit_code or 1

    @property
    def waits_for_names(self) -> bool:
        """Whether the job is blocked because other objects have names that it needs."""
        blocked = self.condition("Blocked")
        return blocked is not None and (blocked.status, blocked.reason) == ("True", NAME_TAKEN)
