"""Who is there: each task's pod, sorted by what it means now that we know what is remembered.

A census is never changed. Policies return the pods that they give up, and `give_up` makes a new census of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Job, Observed, Pod, Role, RoleMemory, RoleStatus, Status, TaskBackoff
from tfyard.model.names import pod_prefix

from . import indexes
from .pod_state import STATES, PodState, state_of

Slots = dict[int, Pod]
"""A role's pods by index."""
Pods = tuple[Pod, ...]


class GivenUp(Struct, frozen=True):
    """A pod whose attempt is over: its task gets another one."""

    pod: Pod
    counts: bool = False
    """It failed by itself, so the next attempt is a restart that counts against the limit."""
    backoff: TaskBackoff | None = None
    """How long its task waits for the next attempt; None: not at all."""


class RoleCensus(Struct, frozen=True, kw_only=True):
    """One role's tasks; `pod_state` says what the groups of pods mean."""

    role: Role
    attempts: Mapping[int, int]
    finished: frozenset[int]
    retries: int
    backoff: Mapping[int, TaskBackoff] = {}
    absent: tuple[int, ...] = ()
    pending: Pods = ()
    running: Pods = ()
    failed: Pods = ()
    leaving: Pods = ()
    stale: Pods = ()

    @property
    def restarts(self) -> int:
        """Restarts that count: of pods that are gone, and in place of those that are here."""
        return self.retries + self.restarts_here

    @property
    def restarts_here(self) -> int:
        here = (self.pending, self.running, self.failed, self.leaving)
        return sum(pod.restarts for pods in here for pod in pods)

    @property
    def restarts_due(self) -> Pods:
        """Pods whose next restart in place has not started yet."""
        return tuple(pod for pod in (*self.pending, *self.running) if pod.restart_due)

    def memory(self) -> RoleMemory:
        attempts = {str(index): count for index, count in sorted(self.attempts.items()) if count}
        waits = {str(i): each for i, each in sorted(self.backoff.items()) if i not in self.finished}
        finished = indexes.compress(self.finished)
        return RoleMemory(attempts=attempts, finished=finished, retries=self.retries, backoff=waits)

    def give_up(self, gone: list[GivenUp]) -> "RoleCensus":
        """Remember that these pods are over, so that a failure of theirs is never counted a second time."""
        uids, waits = {each.pod.uid for each in gone}, {each.pod.task.index: each.backoff for each in gone}

        def stay(pods: Pods) -> Pods:
            return tuple(pod for pod in pods if pod.uid not in uids)

        return replace(
            self,
            attempts={**self.attempts, **{each.pod.task.index: each.pod.attempt + 1 for each in gone}},
            retries=self.retries + sum(each.pod.restarts + each.counts for each in gone),
            backoff={i: each for i, each in {**self.backoff, **waits}.items() if each},
            pending=stay(self.pending),
            running=stay(self.running),
            failed=stay(self.failed),
            leaving=stay(self.leaving),
            stale=(*self.stale, *(each.pod for each in gone)),
        )

    def without_restarts(self) -> "RoleCensus":
        """No pod is started again: those that wait for that have failed."""
        return replace(
            self,
            pending=tuple(pod for pod in self.pending if not pod.restart_due),
            running=tuple(pod for pod in self.running if not pod.restart_due),
            failed=(*self.failed, *self.restarts_due),
        )

    def without_pods(self) -> "RoleCensus":
        return RoleCensus(
            role=self.role, attempts=self.attempts, finished=self.finished, retries=self.retries
        )


class Census(Struct, frozen=True, kw_only=True):
    roles: Mapping[str, RoleCensus]
    excess: Pods
    """Pods beyond the replica count, or of a role that the job no longer has."""

    def __iter__(self) -> Iterator[RoleCensus]:
        return iter(self.roles.values())

    @property
    def restarts(self) -> int:
        return sum(role.restarts for role in self)

    @property
    def restarts_due(self) -> Pods:
        return tuple(pod for role in self for pod in role.restarts_due)

    def give_up(self, gone: Iterable[GivenUp]) -> "Census":
        by_role: dict[str, list[GivenUp]] = defaultdict(list)
        for each in gone:
            by_role[each.pod.task.role].append(each)
        changed = {name: self.roles[name].give_up(pods) for name, pods in by_role.items()}
        return replace(self, roles={**self.roles, **changed}) if changed else self

    def without_restarts(self) -> "Census":
        return replace(self, roles={name: role.without_restarts() for name, role in self.roles.items()})

    def without_pods(self) -> "Census":
        """What is left of a job without pods: its memory."""
        return Census(roles={name: role.without_pods() for name, role in self.roles.items()}, excess=())


def take_census(job: Job, observed: Observed) -> Census:
    slots, excess = _assign(job, observed.pods)
    roles = {role.name: _count(role, slots[role.name], observed.status) for role in job.roles}
    return Census(roles=roles, excess=tuple(excess))


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
    attempts = {int(index): count for index, count in memory.attempts.items() if int(index) < role.replicas}
    finished = indexes.expand(memory.finished, role.replicas)
    unfinished = [index for index in range(role.replicas) if index not in finished]
    here = {index: slots[index] for index in unfinished if index in slots}
    pods = _sort(here, attempts)
    done = pods.pop("finished")
    census = RoleCensus(
        role=role,
        attempts=attempts | _newer_attempts(here, attempts),
        finished=frozenset(finished.union(pod.task.index for pod in done)),
        retries=memory.retries + sum(pod.restarts for pod in done),
        backoff={int(index): each for index, each in memory.backoff.items() if int(index) < role.replicas},
        absent=tuple(index for index in unfinished if index not in here),
        **{state: tuple(found) for state, found in pods.items()},
    )
    return _with_vanished_restarts(census, status)


def _sort(slots: Slots, attempts: Mapping[int, int]) -> dict[PodState, list[Pod]]:
    found: dict[PodState, list[Pod]] = {state: [] for state in STATES}
    for index, pod in slots.items():
        found[state_of(pod, attempts.get(index, 0))].append(pod)
    return found


def _newer_attempts(slots: Slots, attempts: Mapping[int, int]) -> dict[int, int]:
    """The status was lost or restored from a backup: the pod is right."""
    return {index: pod.attempt for index, pod in slots.items() if pod.attempt > attempts.get(index, 0)}


def _with_vanished_restarts(census: RoleCensus, status: Status) -> RoleCensus:
    """A pod may disappear together with its count of restarts; the status has shown them."""
    shown = status.replica_statuses.get(census.role.name, RoleStatus()).restarts
    if not shown or shown <= census.restarts:
        return census
    return replace(census, retries=shown - census.restarts_here)
