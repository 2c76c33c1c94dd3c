"""What became of each role's tasks when their job ended: finished, failed, or stopped because of its end.

`succeeded` keeps upstream's arithmetic, by which a task that ran at the end of a job has succeeded, too.
"""

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec.structs import replace

from tfyard.model import Ending, Job, Pod, Role, RoleMemory, RoleStatus, Status, Task

from . import indexes
from .pod_state import is_active

STOPPED = "stopped"
"""The word for tasks in `ready` that ran when their job ended."""


def settle(job: Job, status: Status, pods: Iterable[Pod], going: Collection[Pod]) -> Status:
    """The status of a job that ends, with `ready` by what its tasks did; `going`: pods whose programs go on."""
    on = {pod.uid for pod in going}
    over = [pod for pod in pods if pod.uid not in on and _is_stopped(pod, status)]
    roles = [role for role in job.roles if role.name in status.replica_statuses]
    return replace(
        status, replica_statuses={role.name: _settled(role, status, going, over) for role in roles}
    )


def _is_stopped(pod: Pod, status: Status) -> bool:
    """Whether the end of the job stops the task, before its program ended or even began. A job that fails counts
    those that wait for their next restart as failed."""
    return is_active(pod) and not pod.end and not (pod.restart_due and status.has("Failed"))


def fates(job: Job, status: Status) -> dict[str, Literal["Succeeded", "Stopped"]]:
    """Task -> what became of it, for the tasks of an ended job that did not fail: also if its pod is gone."""
    if not status.is_finished:
        return {}
    failed = {ending.task for ending in status.endings if is_final(status, ending)}
    ends: dict[str, Literal["Succeeded", "Stopped"]] = {}
    for role in job.roles:
        counted, done = status.replica_statuses.get(role.name, RoleStatus()), _finished(status, role)
        has_stopped = counted.ready.endswith(STOPPED)  # not where another operator ended the job
        for index in range(role.replicas):
            task = Task(role.name, index).name
            if index in done or (has_stopped and task not in failed):
                ends[task] = "Succeeded" if index in done else "Stopped"
    return ends


def is_final(status: Status, ending: Ending) -> bool:
    """Whether no attempt at its task came later. A role without failed tasks shows that a restart in place
    succeeded."""
    role, _, index = ending.task.rpartition("-")
    counted = {name.lower(): each.failed for name, each in status.replica_statuses.items()}
    given_up = {name.lower(): each.attempts for name, each in status.tasks.items()}
    return counted.get(role, 0) > 0 and ending.attempt > given_up.get(role, {}).get(index, 0)


def ready(done: int, size: int, failed: int = 0, stopped: int = 0) -> str:
    """The tasks of a role in words, such as: 1/4, 1 failed, 2 stopped."""
    words = [f"{count} {word}" for count, word in ((failed, "failed"), (stopped, STOPPED)) if count > 0]
    return ", ".join((f"{done}/{size}", *words))


def _settled(role: Role, status: Status, going: Iterable[Pod], over: Iterable[Pod]) -> RoleStatus:
    counted, done = status.replica_statuses[role.name], len(_finished(status, role))
    shown = done + sum(pod.ready for pod in going if pod.task.role == role.name)
    stopped = sum(pod.task.role == role.name and pod.task.index < role.replicas for pod in over)
    return replace(counted, ready=ready(shown, role.replicas, counted.failed, stopped))


def _finished(status: Status, role: Role) -> set[int]:
    return indexes.expand(status.tasks.get(role.name, RoleMemory()).finished, role.replicas)
