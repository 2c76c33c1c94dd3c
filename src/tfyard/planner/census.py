"""The census: each task's pod, sorted by its state, which depends on the pod and on the stored status.

A census is never changed. Policies return the pods that they give up, and `give_up` makes a new census of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Job, Observed, Pod, Role, RoleMemory, RoleStatus, Status, TaskBackoff
from tfyard.model.names import pod_prefix

from . import indexes
from .pod_state import STATES, PodState, state_of

Slots = dict[int, Pod]
"""A role's pods by index."""
Pods = tuple[Pod, ...]
T = TypeVar("T")


class GivenUp(Struct, frozen=True):
    """A pod whose attempt is over: its task gets another one."""

    pod: Pod
    counts: bool = False
    """Whether it failed by itself, so that the next attempt is a restart that counts against the limit."""
    backoff: TaskBackoff | None = None
    """Wait before the task's next attempt; None: no wait."""


class RoleCensus(Struct, frozen=True, kw_only=True):
    """The tasks of one role, with its pods grouped by their `PodState`."""

    role: Role
    attempts: Mapping[int, int]
    finished: frozenset[int]
    retries: int
    excused: Mapping[int, frozenset[str]] = {}
    backoff: Mapping[int, TaskBackoff] = {}
    absent: tuple[int, ...] = ()
    pending: Pods = ()
    running: Pods = ()
    failed: Pods = ()
    leaving: Pods = ()
    stale: Pods = ()
    unknown: Pods = ()
    done: Pods = ()
    """Pods of finished tasks."""

    @property
    def unfinished(self) -> Pods:
        """Pods of the present attempts at unfinished tasks."""
        return (*self.pending, *self.running, *self.failed, *self.leaving, *self.unknown)

    @property
    def restarts(self) -> int:
        """Restarts that count against the limit: of pods that are gone, and in place of pods that exist."""
        return self.retries + self.restarts_here

    @property
    def restarts_here(self) -> int:
        return sum(map(self.own_restarts, self.unfinished))

    def own_restarts(self, pod: Pod) -> int:
        """Restarts in place after failures of the program itself."""
        return max(0, pod.restarts - len(self.excused.get(pod.task.index, ())))

    @property
    def restarts_due(self) -> Pods:
        """Pods whose next restart in place has not started yet."""
        return tuple(pod for pod in (*self.pending, *self.running) if pod.restart_due)

    def memory(self) -> RoleMemory:
        attempts = {str(index): count for index, count in sorted(self.attempts.items()) if count}
        return RoleMemory(
            attempts=attempts,
            finished=indexes.compress(self.finished),
            retries=self.retries,
            excused={str(i): tuple(sorted(each)) for i, each in self._unfinished(self.excused)},
            backoff={str(i): each for i, each in self._unfinished(self.backoff)},
        )

    def _unfinished(self, known: Mapping[int, T]) -> list[tuple[int, T]]:
        return sorted(item for item in known.items() if item[0] not in self.finished)

    def give_up(self, gone: list[GivenUp]) -> "RoleCensus":
        """A census in which these pods are over, so that their failures are never counted a second time."""
        uids, waits = {each.pod.uid for each in gone}, {each.pod.task.index: each.backoff for each in gone}

        def stay(pods: Pods) -> Pods:
            return tuple(pod for pod in pods if pod.uid not in uids)

        return replace(
            self,
            attempts={**self.attempts, **{each.pod.task.index: each.pod.attempt + 1 for each in gone}},
            retries=self.retries + sum(self.own_restarts(each.pod) + each.counts for each in gone),
            excused={index: each for index, each in self.excused.items() if index not in waits},
            backoff={i: each for i, each in {**self.backoff, **waits}.items() if each},
            pending=stay(self.pending),
            running=stay(self.running),
            failed=stay(self.failed),
            leaving=stay(self.leaving),
            unknown=stay(self.unknown),
            stale=(*self.stale, *(each.pod for each in gone)),
        )

    def forgive(self, pod: Pod, restarts: frozenset[str], *, is_due: bool) -> "RoleCensus":
        """A census in which restarts in place of a pod do not count; `is_due`: neither does the next one."""
        index, excused = pod.task.index, self.excused.get(pod.task.index, frozenset())

        def seen(pods: Pods) -> Pods:
            return tuple(replace(each, disrupted=True) if each.uid == pod.uid else each for each in pods)

        census = replace(self, excused={**self.excused, index: excused | restarts}) if restarts else self
        return replace(census, pending=seen(self.pending), running=seen(self.running)) if is_due else census

    def without_restarts(self) -> "RoleCensus":
        """A census in which no program is restarted in place: pods that wait for a restart have failed."""
        return replace(
            self,
            pending=tuple(pod for pod in self.pending if not pod.restart_due),
            running=tuple(pod for pod in self.running if not pod.restart_due),
            failed=(*self.failed, *self.restarts_due),
        )

    def reopened(self) -> "RoleCensus":
        """A census in which finished tasks have to run again."""
        again = {index: self.attempts.get(index, 0) + 1 for index in self.finished}
        return replace(
            self,
            attempts={**self.attempts, **again},
            finished=frozenset(),
            stale=(*self.stale, *self.done),
            done=(),
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

    def reopened(self, role: str) -> "Census":
        return replace(self, roles={**self.roles, role: self.roles[role].reopened()})

    def forgive(self, pod: Pod, restarts: frozenset[str], *, is_due: bool) -> "Census":
        role = self.roles[pod.task.role].forgive(pod, restarts, is_due=is_due)
        return replace(self, roles={**self.roles, pod.task.role: role})

    def without_restarts(self) -> "Census":
        return replace(self, roles={name: role.without_restarts() for name, role in self.roles.items()})

    def without_pods(self) -> "Census":
        """A census without pods: what the status remembers of each role stays."""
        return Census(roles={name: role.without_pods() for name, role in self.roles.items()}, excess=())


def take_census(job: Job, observed: Observed) -> Census:
    slots, excess = _assign(job, observed.pods)
    roles = {role.name: _count(role, slots[role.name], observed.status) for role in job.roles}
    return Census(roles=roles, excess=tuple(excess))


def _assign(job: Job, pods: tuple[Pod, ...]) -> tuple[dict[str, Slots], list[Pod]]:
    roles = {role.name: (role.replicas, pod_prefix(job.name, role.name)) for role in job.roles}
    slots: dict[str, Slots] = {role.name: {} for role in job.roles}
    excess = []
    for pod in pods:
        role, index = pod.task
        replicas, prefix = roles.get(role, (0, ""))
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
        retries=memory.retries,
        excused=_excused(here, attempts, memory),
        backoff={int(index): each for index, each in memory.backoff.items() if int(index) < role.replicas},
        absent=tuple(index for index in unfinished if index not in here),
        done=tuple(pod for index, pod in slots.items() if index in finished) + tuple(done),
        **{state: tuple(in_state) for state, in_state in pods.items()},
    )
    census = replace(census, retries=census.retries + sum(map(census.own_restarts, done)))
    return _with_vanished_restarts(census, status)


def _sort(slots: Slots, attempts: Mapping[int, int]) -> dict[PodState, list[Pod]]:
    pods: dict[PodState, list[Pod]] = {state: [] for state in STATES}
    for index, pod in slots.items():
        pods[state_of(pod, attempts.get(index, 0))].append(pod)
    return pods


def _excused(slots: Slots, attempts: Mapping[int, int], memory: RoleMemory) -> dict[int, frozenset[str]]:
    """Restarts of existing pods that a disruption caused, from the status and from the pods."""
    restarts = {
        index: frozenset((*memory.excused.get(str(index), ()), *pod.excused))
        for index, pod in slots.items()
        if (pod.restarts or pod.unreadable) and pod.attempt >= attempts.get(index, 0)
    }
    return {index: each for index, each in restarts.items() if each}


def _newer_attempts(slots: Slots, attempts: Mapping[int, int]) -> dict[int, int]:
    """Attempts of pods that are newer than in the status, which then was lost or restored from a backup."""
    return {index: pod.attempt for index, pod in slots.items() if pod.attempt > attempts.get(index, 0)}


def _with_vanished_restarts(census: RoleCensus, status: Status) -> RoleCensus:
    """A pod may disappear together with its count of restarts; the role's count in the status has them. A pod that
    cannot be read keeps them: it shows them again when it can."""
    shown = status.replica_statuses.get(census.role.name, RoleStatus()).restarts
    missing = shown - census.restarts
    if missing <= 0:
        return census
    if census.unknown:
        pod, *others = census.unknown
        excused = len(census.excused.get(pod.task.index, ()))
        return replace(census, unknown=(replace(pod, restarts=missing + excused), *others))
    return replace(census, retries=census.retries + missing)
