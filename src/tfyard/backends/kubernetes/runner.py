"""A cluster as a PodRunner: observes pods by the cache, and applies decisions."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from tfyard.backends.base import PodRunner
from tfyard.kube import KubeError, ServerFault, Transient, waiting_at_most
from tfyard.model import (
    Action,
    Amend,
    Create,
    Delete,
    DeleteJob,
    Job,
    Observed,
    Obstacle,
    Outcome,
    Pod,
    Status,
)
from tfyard.model.backoff import Backoff
from tfyard.model.names import POD_GROUP, REPLICA_TYPE
from tfyard.planner.reasons import BLOCKED
from tfyard.views.tfjob_status import decode_status

from . import unreadable
from .cache import Cache, JobKey
from .fair_slots import FairSlots
from .last_lines import LastLines
from .namesakes import holder_of_names
from .objects import ObjectWriter, not_yet_free
from .setup_events import SetupEvents
from .undone_writes import UndoneWrites, WaitingWrite, postponed
from .views import Child, ServiceView, to_group
from .writes import LONGEST_SILENT_WAIT

PARALLEL_WRITES = 128
"""Most creates, patches and deletes in parallel; fair_slots.py divides them: one job has at most a quarter.
Statuses need no slots: a worker writes one at a time, and the client has connections for all of them."""
SPEAK_FOR_ROLE = {"Invalid", "QuotaExceeded", "Forbidden", "NamespaceTerminating", "Refused"}
"""Reasons for which all pods of a role would be refused like the first one: they are not all tried."""
FAULTS = 3
"""Number of server failures in a row after which they are reported as an obstacle."""


class ClusterRunner(PodRunner):
    def __init__(
        self,
        objects: ObjectWriter,
        cache: Cache,
        backoff: Backoff,
        setup_events: SetupEvents,
        last_lines: LastLines,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects, self._cache = objects, cache
        self._setup_events, self.last_lines = setup_events, last_lines
        self._obstacles: dict[str, tuple[Obstacle, ...]] = {}
        """Uid of a job that was observed -> its obstacles."""
        self._faults: dict[str, int] = {}
        self._begun: dict[str, datetime] = {}
        """Uid of a job without a stored status -> when it was first observed."""
        self.undone = UndoneWrites(backoff, clock)
        self._slots = FairSlots(PARALLEL_WRITES)

    async def observe(self, job: Job) -> Observed:
        key = JobKey(job.api_version.partition("/")[0], job.namespace, job.name)
        view, namesake = self._cache.jobs[key], holder_of_names(self._cache, key)
        children = self._cache.children.of(job.as_owner)
        group = children.get((POD_GROUP, job.name))
        status, pods = decode_status(bytes(view.status)), self._cache.pods.of(job.as_owner)
        obstacles = self._obstacles.setdefault(job.uid, _stored_obstacles(status))
        return Observed(
            status=status,
            pods=await self._setup_events.explain(job, pods),
            children=frozenset(children),
            group=to_group(group) if group else None,
            services={
                name: view.spec for (_, name), view in children.items() if isinstance(view, ServiceView)
            },
            lines=self.last_lines.of(job.uid),
            obstacles=(*_unreadable(pods, children), *obstacles),
            namesake=f"tfjobs.{namesake.group}" if namesake else "",
            deleting=view.metadata.deletion_timestamp is not None,
            begun=self._first_seen(job.uid, status),
        )

    def _first_seen(self, uid: str, status: Status) -> datetime | None:
        if status.conditions:
            self._begun.pop(uid, None)
            return None
        return self._begun.setdefault(uid, self._objects.now())

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        attempt = ActionBatch(self._objects, self._slots, job, is_blocked=bool(self._obstacles.get(job.uid)))
        self._cache.taken_names.forget(job.as_owner)
        try:
            await attempt.run(self._creatable(attempt, self._due(attempt, actions)))
        except KubeError as problem:
            self._count_fault(attempt, problem)
            return self._remember(attempt, str(problem))
        self._faults.pop(job.uid, None)
        return self._remember(attempt)

    def _due(self, attempt: "ActionBatch", actions: Sequence[Action]) -> Sequence[Action]:
        """The actions without those that must wait: they were undone or postponed before."""
        waits = [self.undone.why_wait(attempt.job.uid, action) for action in actions]
        for position, wait in enumerate(waits):
            if wait is not None:
                attempt.add(wait, position)
        due = [action for action, wait in zip(actions, waits, strict=True) if wait is None]
        lacks_group = any(map(_is_group, actions)) and not any(map(_is_group, due))
        return [action for action in due if not _role_of_pod(action)] if lacks_group else due

    def _creatable(self, attempt: "ActionBatch", actions: Sequence[Action]) -> Sequence[Action]:
        """The actions, without creates while an object of a deleted job has one of their names: new tasks would
        connect to tasks of that job, which have the same names and may terminate for long."""
        creates = [each for each in actions if isinstance(each, Create)]
        if not creates:
            return actions  # most passes create nothing, and the search is long where there are many jobs
        job, left = attempt.job, self._cache.leftovers(attempt.job.namespace)
        held = [each for each in creates if (each.kind, each.name) in left]
        for each in held:
            self._cache.taken_names.add(job.as_owner, (each.kind, job.namespace, each.name))
            attempt.add(not_yet_free(each))
        return [each for each in actions if not isinstance(each, Create)] if held else actions

    def forget(self, uid: str) -> None:
        self._obstacles.pop(uid, None)
        self._faults.pop(uid, None)
        self._begun.pop(uid, None)
        self.undone.forget(uid)
        self._setup_events.forget(uid)
        self.last_lines.forget(uid)

    def forget_obstacles(self) -> None:
        """Forgets all obstacles after another operator was the leader: its obstacles are in the statuses."""
        self._obstacles.clear()

    def _count_fault(self, attempt: "ActionBatch", problem: KubeError) -> None:
        """Counts a server failure; many in a row are reported, such as a webhook that cannot be called."""
        if isinstance(problem, ServerFault):
            uid = attempt.job.uid
            faults = self._faults[uid] = self._faults.get(uid, 0) + 1
            if faults >= FAULTS:
                attempt.add(Obstacle("ServerFault", f"the server failed {FAULTS} times or more: {problem}"))

    def _remember(self, attempt: "ActionBatch", error: str = "") -> Outcome:
        """Keeps the obstacles: the next decision reports them, or that there are none any more. After an error
        without an obstacle, the earlier ones hold."""
        uid, done = attempt.job.uid, tuple(attempt.done)
        uids = tuple(filter(None, attempt.uids))
        if self._cache.key_of(attempt.job.as_owner) is None:
            self._obstacles.pop(uid, None)
            self._cache.taken_names.forget(attempt.job.as_owner)
            return Outcome(done=done, error=error)  # deleted meanwhile: `forget` has already been called
        self.undone.review(uid, list(zip(done, attempt.uids, strict=True)), attempt.waiting)
        met, before = attempt.obstacles, self._obstacles.get(uid, ())
        if error and not met:
            return Outcome(done=done, uids=uids, error=error)
        reported = {**{wait.reason: wait for wait in self.undone.waits(uid)}, **met}
        kept = self._obstacles[uid] = tuple(obstacle for _, obstacle in sorted(reported.items()))
        return Outcome(
            done=done, uids=uids, obstacles=kept if met else (), is_unblocked=bool(before and not kept)
        )


def _unreadable(pods: Iterable[Pod], children: Mapping[tuple[str, str], Child]) -> Iterator[Obstacle]:
    """The job's objects that cannot be read; a job shows the first."""
    yield from (unreadable.obstacle("Pod", pod.name, pod.unreadable) for pod in pods if pod.unreadable)
    for (kind, name), child in children.items():
        if problem := unreadable.problem_of(child):
            yield unreadable.obstacle(kind, name, problem)


def _stored_obstacles(status: Status) -> tuple[Obstacle, ...]:
    """Obstacles from the status, as an earlier operator wrote them: they hold until this one has tried."""
    blocked = status.condition(BLOCKED)
    if blocked is None or blocked.status != "True" or blocked.reason == unreadable.REASON:
        return ()
    return (Obstacle(blocked.reason, blocked.message),)


class ActionBatch:
    """One attempt to do all actions of a decision; `done`, `uids` and `obstacles` (by reason) are its result.

    While the job `is_blocked`, one pod of each role is tried before the others."""

    def __init__(self, objects: ObjectWriter, slots: FairSlots, job: Job, *, is_blocked: bool) -> None:
        self._objects, self._slots, self.job, self._is_blocked = objects, slots, job, is_blocked
        self.done: list[Action] = []
        self.uids: list[str] = []
        self._found: dict[str, tuple[int, Obstacle]] = {}
        self._waiting: dict[int, WaitingWrite] = {}
        self._refused_roles: set[str] = set()

    @property
    def waiting(self) -> list[WaitingWrite]:
        """The writes that must not be repeated at once, in the order of their actions."""
        return [obstacle for _, obstacle in sorted(self._waiting.items())]

    @property
    def obstacles(self) -> dict[str, Obstacle]:
        return {reason: obstacle for reason, (_, obstacle) in self._found.items()}

    async def run(self, actions: Sequence[Action]) -> None:
        """Deletes and patches, then Services and other children, then pods; the actions of each step in
        parallel."""
        for step in _steps(actions, one_pod_first=self._is_blocked):
            await self._in_parallel(partial(self._do, position, action) for position, action in step)
            if self._found and any(_is_group(each) for _, each in step):
                return  # pods would wait for a group that is missing, or join another one of that name

    async def _in_parallel(self, calls: Iterable[Callable[[], Awaitable[None]]]) -> None:
        """After a failure no other call is started, but those in flight are awaited: they must not go on during
        the next reconcile."""
        failed = asyncio.Event()

        async def run(call: Callable[[], Awaitable[None]]) -> None:
            async with self._slots.slot(self.job.namespace, self.job.uid):
                if failed.is_set():
                    return
                try:
                    await call()
                except BaseException:
                    failed.set()
                    raise

        for problem in await asyncio.gather(*map(run, calls), return_exceptions=True):
            if problem is not None:
                raise problem

    def add(self, obstacle: Obstacle, position: int = -1) -> None:
        """Keeps one obstacle per reason, that of the first action, whichever answer comes first: else the message
        would change at each attempt."""
        first = self._found.get(obstacle.reason)
        if first is None or position < first[0]:
            self._found[obstacle.reason] = (position, obstacle)

    async def _do(self, position: int, action: Action) -> None:
        role = _role_of_pod(action)
        if role in self._refused_roles:
            return
        try:
            with waiting_at_most(LONGEST_SILENT_WAIT):
                obstacle, uid = await self._perform(action)
        except Transient as problem:
            obstacle, uid = postponed(action, problem), ""
            if obstacle is None:
                raise
        if obstacle is None:
            self.done.append(action)
            self.uids.append(uid)
            return
        self.add(obstacle, position)
        if isinstance(obstacle, WaitingWrite):
            self._waiting[position] = obstacle
        if role and (obstacle.reason in SPEAK_FOR_ROLE or isinstance(obstacle, WaitingWrite)):
            self._refused_roles.add(role)

    async def _perform(self, action: Action) -> tuple[Obstacle | None, str]:
        """Does one action; the result is the obstacle in its way, and the uid of the object if it is known."""
        match action:
            case Create():
                created = await self._objects.create(self.job, action)
                return (created, "") if isinstance(created, Obstacle) else (None, created)
            case Amend():
                return await self._objects.amend(self.job, action), ""
            case Delete():
                return await self._objects.delete(self.job, action), action.uid
            case DeleteJob():
                await self._objects.delete_job(self.job)
        return None, ""


def _steps(actions: Sequence[Action], *, one_pod_first: bool) -> list[list[tuple[int, Action]]]:
    """The actions of each step, with their positions."""
    steps: tuple[list[tuple[int, Action]], ...] = ([], [], [], [])
    tried: set[str] = set()
    for position, action in enumerate(actions):
        role = _role_of_pod(action)
        is_first = one_pod_first and role not in tried
        tried.add(role)
        number = 0 if not isinstance(action, Create) else 1 if not role else 2 if is_first else 3
        steps[number].append((position, action))
    return [step for step in steps if step]


def _is_group(action: Action) -> bool:
    return isinstance(action, Create) and action.kind == POD_GROUP


def _role_of_pod(action: Action) -> str:
    """The role of the pod that an action creates; empty if it creates none."""
    if not isinstance(action, Create) or action.kind != "Pod":
        return ""
    return str(action.manifest["metadata"]["labels"][REPLICA_TYPE])
