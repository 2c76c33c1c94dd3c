"""The attempts at a job's tasks: when each waited, was prepared, ran and ended, and what they cost."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict, replace

from tfyard.model import CHIEF, MASTER, WORKER, Job, Role, RoleMemory, Status, Task, tensorflow_container
from tfyard.model.quantity import amount
from tfyard.overview.cause import named
from tfyard.overview.wording import duration
from tfyard.planner.results import fates, is_final

COLUMNS = ("TASK", "ATTEMPT", "STATE", "WAITED", "PREPARED", "RAN", "EXIT CODE", "REASON", "NODE")
UNDER_WAY = ("Waiting", "Preparing", "Running")
"""States of attempts that have not ended."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One start of a task's program."""

    task: str
    attempt: int = 1
    """The number of its pod among the task's pods, from 1."""
    restart: int = 0
    """The number of the restart in place of that pod's program; 0: its first start."""
    state: str = "Failed"
    created: datetime | None = None
    scheduled: datetime | None = None
    """When the pod got its node. Between this and `started`, volumes are mounted and images pulled."""
    started: datetime | None = None
    finished: datetime | None = None
    exit_code: int | None = None
    container: str = ""
    """The init container that this is about, because the program has not started; empty: the program."""
    reason: str = ""
    message: str = ""
    peer: str = ""
    """The tasks that were taken away before, if the attempt ended because of that."""
    node: str = ""

    @property
    def key(self) -> tuple[str, int, bool, int]:
        return self.task, self.attempt, not self.container, self.restart

    @property
    def number(self) -> str:
        """`2` in its second pod; `2.1` after a restart in that pod."""
        return f"{self.attempt}.{self.restart}" if self.restart else str(self.attempt)


def remembered(status: Status) -> list[Attempt]:
    """Failed attempts from the status of the job: their pods may be gone."""
    return [Attempt(**asdict(ending)) for ending in status.endings]


def merged(remembered: Iterable[Attempt], seen: Iterable[Attempt], tasks: Sequence[str]) -> list[Attempt]:
    """All attempts in the order of the tasks, oldest first. `seen` takes precedence over `remembered`, except for
    a reason or message that only the latter has."""
    in_status = {each.key: each for each in remembered}
    all_attempts = in_status | {each.key: _with_reason(each, in_status.get(each.key)) for each in seen}
    turns = {task: turn for turn, task in enumerate(tasks)}
    return sorted(all_attempts.values(), key=lambda each: (turns.get(each.task, len(turns)), *each.key))


def _with_reason(seen: Attempt, known: Attempt | None) -> Attempt:
    if known is None or seen.state == "Running":
        return seen
    return replace(seen, reason=seen.reason or known.reason, message=seen.message or known.message)


def failed(seen: Iterable[Attempt], status: Status) -> tuple[str, ...]:
    """The tasks whose last attempt has failed, by `seen`, or else by the status of the job."""
    last = {attempt.task: attempt.state for attempt in seen}
    gone = {ending.task: "Failed" for ending in status.endings if is_final(status, ending)}
    return tuple(task for task, state in (gone | last).items() if state == "Failed")


def gone(job: Job, status: Status, known: Iterable[Attempt]) -> list[Attempt]:
    """Attempts of an ended job whose pods are gone, as far as its status tells of them."""
    ends_by_key, keys = fates(job, status), {each.key for each in known}
    of_tasks = [
        Attempt(task=task.name, attempt=_replaced(status, task) + 1, state=ends_by_key[task.name])
        for task in job.tasks()
        if task.name in ends_by_key
    ]
    return [each for each in of_tasks if each.key not in keys]


def _replaced(status: Status, task: Task) -> int:
    """Number of a task's pods that were replaced."""
    return status.tasks.get(task.role, RoleMemory()).attempts.get(str(task.index), 0)


def cut_off(roles: Iterable[Role], stopped: Collection[str]) -> tuple[str, str]:
    """A sentence about workers that still ran when the first one ended the job, and the fix; empty: there are
    none. Where there is a chief, workers wait for its end."""
    leads = not any(role.name in (CHIEF, MASTER) and role.replicas for role in roles)
    workers = [task for task in stopped if task.startswith(f"{WORKER.lower()}-")]
    if not leads or not workers or "worker-0" in workers:
        return "", ""
    still = "ran, and was stopped," if len(workers) == 1 else "ran, and were stopped,"
    return f"{named(workers)} still {still} when worker-0 ended", "job file: `success: all-workers`"


def row(attempt: Attempt, now: datetime) -> tuple[str, ...]:
    """Cells of COLUMNS."""
    end = attempt.finished or (now if attempt.state in UNDER_WAY else None)
    began = None if attempt.container else attempt.started
    return (
        attempt.task,
        attempt.number,
        attempt.state,
        _between(attempt.created, attempt.scheduled or began or end),
        _between(attempt.scheduled, began or end),
        _between(began, end),
        "" if attempt.exit_code is None else str(attempt.exit_code),
        _reason(attempt),
        attempt.node,
    )


def _reason(attempt: Attempt) -> str:
    if not attempt.container:
        return attempt.reason
    return f"{attempt.reason} in init container {attempt.container}".lstrip()


def gpus(role: Role) -> float:
    """GPUs per task of this role."""
    limits = (tensorflow_container(role.template).get("resources") or {}).get("limits") or {}
    return float(sum(amount(value) or 0 for name, value in limits.items() if str(name).endswith("/gpu")))


def cpus(role: Role) -> float:
    """Cores per task of this role: those that it asks for, else its limit."""
    resources = tensorflow_container(role.template).get("resources") or {}
    request, most = ((resources.get(kind) or {}).get("cpu") for kind in ("requests", "limits"))
    return float(amount(request if request is not None else most or 0) or 0)


def gpu_hours(job: Job, attempts: Iterable[Attempt], now: datetime) -> float | None:
    """GPU-hours of these attempts; None if the job asks for no GPUs."""
    return _hours({role.name.lower(): gpus(role) for role in job.roles}, attempts, now)


def cpu_hours(job: Job, attempts: Iterable[Attempt], now: datetime) -> float | None:
    """CPU-hours of these attempts, by what the job asks for; None if it asks for no CPU."""
    return _hours({role.name.lower(): cpus(role) for role in job.roles}, attempts, now)


def _hours(per_task: dict[str, float], attempts: Iterable[Attempt], now: datetime) -> float | None:
    if not any(per_task.values()):
        return None
    seconds = 0.0
    for attempt in attempts:
        if attempt.started and not attempt.container:
            ran = ((attempt.finished or now) - attempt.started).total_seconds()
            seconds += max(0.0, ran) * per_task.get(attempt.task.rpartition("-")[0], 0.0)
    return seconds / 3600


def _between(first: datetime | None, last: datetime | None) -> str:
    return duration(max(0.0, (last - first).total_seconds())) if first and last else ""
