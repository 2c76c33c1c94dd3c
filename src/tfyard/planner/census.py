"""Who is there: each task's pod, sorted by what it means now that we know what is remembered."""

from collections.abc import Iterator

from msgspec import Struct, field

from tfyard.model import Job, Observed, Pod, Role, RoleMemory, RoleStatus, Status
from tfyard.model.names import pod_prefix

from . import indexes
from .reasons import SUSPENDED

Slots = dict[int, Pod]
"""A role's pods by index."""


class RoleCensus(Struct, kw_only=True):
    """One role's tasks. Lives only inside a single decision."""

    role: Role
    attempts: dict[int, int]
    finished: set[int]
    retries: int
    absent: list[int] = field(default_factory=list)
    pending: list[Pod] = field(default_factory=list)
    running: list[Pod] = field(default_factory=list)
    failed: list[Pod] = field(default_factory=list)
    """Ended badly, and not yet judged."""
    leaving: list[Pod] = field(default_factory=list)
    """Being deleted by somebody: the task will need a new pod once the name is free."""
    stale: list[Pod] = field(default_factory=list)
    """Given up earlier: a failure of theirs was counted already."""

    @property
    def restarts(self) -> int:
        """Restarts that count: of pods that are gone, and in place of those that are here."""
        return self.retries + self.restarts_here

    @property
    def restarts_here(self) -> int:
        here = (self.pending, self.running, self.failed, self.leaving)
        return sum(pod.restarts for pods in here for pod in pods)

    def memory(self) -> RoleMemory:
        attempts = {str(index): count for index, count in sorted(self.attempts.items()) if count}
        finished = indexes.compress(self.finished)
        return RoleMemory(attempts=attempts, finished=finished, retries=self.retries)

    def give_up(self, pod: Pod, *, counts: bool) -> None:
        """Remember that this pod is over, so that its failure is never counted a second time."""
        self.attempts[pod.task.index] = pod.attempt + 1
        self.retries += pod.restarts + (1 if counts else 0)
        self.stale.append(pod)

    def take_back(self, pod: Pod) -> None:
        """The job ends before this pod is run again: a failure, not a restart."""
        self.attempts[pod.task.index] = pod.attempt
        self.retries -= pod.restarts + 1
        self.failed.append(pod)


class Census(Struct, kw_only=True):
    roles: dict[str, RoleCensus]
    excess: list[Pod]
    """Pods beyond the replica count, or of a role that the job no longer has."""

    def __iter__(self) -> Iterator[RoleCensus]:
        return iter(self.roles.values())

    @property
    def restarts(self) -> int:
        return sum(role.restarts for role in self)


def take_census(job: Job, observed: Observed) -> Census:
    slots, excess = _assign(job, observed.pods)
    roles = {role.name: _count(role, slots[role.name], observed.status) for role in job.roles}
    return Census(roles=roles, excess=excess)


def _assign(job: Job, pods: tuple[Pod, ...]) -> tuple[dict[str, Slots], list[Pod]]:
    known = {role.name: (role.replicas, pod_prefix(job.name, role.name)) for role in job.roles}
    slots: dict[str, Slots] = {role.name: {} for role in job.roles}
    excess = []
    for pod in pods:
        role, index = pod.task
        replicas, prefix = known.get(role, (0, ""))
        if 0 <= index < replicas and pod.name == f"{prefix}{index}":
            slots[role][index] = pod
        else:
            excess.append(pod)
    return slots, excess


def _count(role: Role, slots: Slots, status: Status) -> RoleCensus:
    memory = status.tasks.get(role.name, RoleMemory())
    is_suspended = status.has(SUSPENDED)
    attempts = {int(index): count for index, count in memory.attempts.items() if int(index) < role.replicas}
    finished = indexes.expand(memory.finished, role.replicas)
    census = RoleCensus(role=role, attempts=attempts, finished=finished, retries=memory.retries)
    for index in range(role.replicas):
        if index in finished:
            continue
        pod = slots.get(index)
        if pod is None:
            census.absent.append(index)
        else:
            _place(census, pod, is_suspended)
    shown = status.replica_statuses.get(role.name, RoleStatus()).restarts
    census.retries = max(census.retries, shown - census.restarts_here)  # a pod may vanish with its count
    return census


def _place(census: RoleCensus, pod: Pod, is_suspended: bool) -> None:
    attempt = census.attempts.get(pod.task.index, 0)
    if pod.attempt < attempt:
        census.stale.append(pod)
        return
    if pod.attempt > attempt:  # the status was lost or restored from a backup; the pod knows better
        census.attempts[pod.task.index] = pod.attempt
    sent_away = is_suspended and pod.deleting is not None  # it may well save its work and exit 0 then
    if pod.phase == "Succeeded" and not sent_away:
        census.finished.add(pod.task.index)
        census.retries += pod.restarts
    elif pod.deleting is not None:
        census.leaving.append(pod)
    elif pod.phase == "Failed":
        census.failed.append(pod)
    elif pod.phase == "Pending":
        census.pending.append(pod)
    else:
        census.running.append(pod)
