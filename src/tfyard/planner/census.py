"""Who is there: each task's pod, sorted by what it means now that we know what is remembered."""

from collections.abc import Iterator

from msgspec import Struct, field

from tfyard.model import Job, Observed, Pod, Role, RoleMemory, Task
from tfyard.model.names import pod_name

from . import indexes


class RoleCensus(Struct, kw_only=True):
    """One role's tasks. Lives only inside a single decision."""

    role: Role
    attempts: dict[int, int]
    finished: set[int]
    retries: int
    newly_finished: list[Pod] = field(default_factory=list)
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
        here = (self.pending, self.running, self.failed)
        return self.retries + sum(pod.restarts for pods in here for pod in pods)

    def memory(self) -> RoleMemory:
        attempts = {str(index): count for index, count in sorted(self.attempts.items())}
        finished = indexes.compress(self.finished)
        return RoleMemory(attempts=attempts, finished=finished, retries=self.retries)

    def give_up(self, pod: Pod, *, counts: bool) -> None:
        """Remember that this pod is over, so that its failure is never counted a second time."""
        self.attempts[pod.task.index] = pod.attempt + 1
        self.retries += pod.restarts + (1 if counts else 0)
        self.stale.append(pod)


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
    memories = observed.status.tasks
    roles = {role.name: _count(role, slots, memories.get(role.name, RoleMemory())) for role in job.roles}
    return Census(roles=roles, excess=excess)


def _assign(job: Job, pods: tuple[Pod, ...]) -> tuple[dict[Task, Pod], list[Pod]]:
    replicas = {role.name: role.replicas for role in job.roles}
    slots: dict[Task, Pod] = {}
    excess = []
    for pod in pods:
        task = pod.task
        if task.index < replicas.get(task.role, 0) and pod.name == pod_name(job.name, task):
            slots[task] = pod
        else:
            excess.append(pod)
    return slots, excess


def _count(role: Role, slots: dict[Task, Pod], memory: RoleMemory) -> RoleCensus:
    attempts = {int(index): count for index, count in memory.attempts.items() if int(index) < role.replicas}
    finished = {index for index in indexes.expand(memory.finished) if index < role.replicas}
    census = RoleCensus(role=role, attempts=attempts, finished=finished, retries=memory.retries)
    for task in role.tasks():
        pod = slots.get(task)
        if task.index in finished:
            continue
        if pod is None:
            census.absent.append(task.index)
        else:
            _place(census, pod)
    return census


def _place(census: RoleCensus, pod: Pod) -> None:
    attempt = census.attempts.get(pod.task.index, 0)
    if pod.attempt < attempt:
        census.stale.append(pod)
        return
    if pod.attempt > attempt:  # the status was lost or restored from a backup; the pod knows better
        census.attempts[pod.task.index] = pod.attempt
    if pod.phase == "Succeeded":
        census.finished.add(pod.task.index)
        census.newly_finished.append(pod)
    elif pod.deleting is not None:
        census.leaving.append(pod)
    elif pod.phase == "Failed":
        census.failed.append(pod)
    elif pod.phase == "Pending":
        census.pending.append(pod)
    else:
        census.running.append(pod)
