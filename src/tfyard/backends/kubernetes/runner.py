"""A cluster as a PodRunner: observes what the cache knows, and applies what was decided."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from tfyard import formats
from tfyard.backends.base import PodRunner
from tfyard.kube import KubeError, ServerFault
from tfyard.model import Action, Amend, Create, Delete, DeleteJob, Job, Observed, Obstacle, Outcome, Status
from tfyard.model.backoff import Backoff
from tfyard.model.names import POD_GROUP, REPLICA_TYPE
from tfyard.planner.reasons import BLOCKED

from .cache import Cache, JobKey
from .lost_attempts import ATTEMPT_LOST, LostAttempts
from .namesakes import holder_of_names
from .objects import ObjectWriter
from .setup_events import SetupEvents
from .views import to_group

PARALLEL_WRITES = 32
"""Writes of one job at the same time: a large job must leave room for the others."""
SPEAK_FOR_ROLE = {"Invalid", "QuotaExceeded", "Forbidden", "NamespaceTerminating", "Refused", ATTEMPT_LOST}
"""If one pod is refused for these reasons, the other pods of its role would be as well: they are not all tried."""
FAULTS = 3
"""After so many failures of the server in a row, that is reported as an obstacle."""


class ClusterRunner(PodRunner):
    def __init__(
        self, objects: ObjectWriter, cache: Cache, backoff: Backoff, setup_events: SetupEvents
    ) -> None:
        self._objects, self._cache, self._setup_events = objects, cache, setup_events
        self._obstacles: dict[str, tuple[Obstacle, ...]] = {}
        """Of each job that was observed: what stands in its way."""
        self._faults: dict[str, int] = {}
        self._lost = LostAttempts(backoff)

    async def observe(self, job: Job) -> Observed:
        key = JobKey(job.api_version.partition("/")[0], job.namespace, job.name)
        view, namesake = self._cache.jobs[key], holder_of_names(self._cache, key)
        children = self._cache.children.of(job.uid)
        group = children.get((POD_GROUP, job.name))
        status = formats.load_status(view.status_document())
        return Observed(
            status=status,
            pods=await self._setup_events.explain(job, self._cache.pods.of(job.uid)),
            children=frozenset(children),
            group=to_group(group) if group else None,
            obstacles=self._obstacles.setdefault(job.uid, _stored_obstacles(status)),
            namesake=f"tfjobs.{namesake.group}" if namesake else "",
            deleting=view.metadata.deletion_timestamp is not None,
        )

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        attempt = Attempt(self._objects, job, is_blocked=bool(self._obstacles.get(job.uid)))
        allowed = self._lost.allowed(job.uid, actions)
        self._cache.taken_names.forget(job.uid)
        try:
            await attempt.run(allowed)
        except KubeError as problem:
            self._count_fault(attempt, problem)
            if not attempt.obstacles:
                return Outcome(done=tuple(attempt.done), error=str(problem))
        else:
            self._faults.pop(job.uid, None)
        return self._remember(attempt, has_waiting=len(allowed) < len(actions))

    def forget(self, uid: str) -> None:
        self._obstacles.pop(uid, None)
        self._faults.pop(uid, None)
        self._lost.forget(uid)
        self._setup_events.forget(uid)

    def forget_obstacles(self) -> None:
        """Another operator was the leader meanwhile: what it found is in the statuses."""
        self._obstacles.clear()

    def _count_fault(self, attempt: "Attempt", problem: KubeError) -> None:
        """A webhook that cannot be called is a fault of the server as well, and somebody should know of it."""
        if isinstance(problem, ServerFault):
            uid = attempt.job.uid
            faults = self._faults[uid] = self._faults.get(uid, 0) + 1
            if faults >= FAULTS:
                attempt.add(Obstacle("ServerFault", f"the server failed {FAULTS} times or more: {problem}"))

    def _remember(self, attempt: "Attempt", *, has_waiting: bool) -> Outcome:
        """The next decision reports the obstacles, or that there are none any more."""
        uid, done = attempt.job.uid, tuple(attempt.done)
        before = self._obstacles.pop(uid, ())
        if self._cache.key_of(uid) is None:
            return Outcome(done=done)  # the job was deleted meanwhile: `forget` has already been called
        found = attempt.obstacles
        self._lost.review(uid, done, found.get(ATTEMPT_LOST))
        lost = self._lost.waits(uid)
        told = {**found, ATTEMPT_LOST: lost} if lost else found
        kept = self._obstacles[uid] = tuple(obstacle for _, obstacle in sorted(told.items()))
        retry = kept if found or has_waiting else ()
        return Outcome(done=done, obstacles=retry, is_unblocked=bool(before and not kept))


def _stored_obstacles(status: Status) -> tuple[Obstacle, ...]:
    """What stood in the way when an earlier operator stopped: it does until this one has tried."""
    blocked = status.condition(BLOCKED)
    if blocked is None or blocked.status != "True":
        return ()
    return (Obstacle(blocked.reason, blocked.message),)


class Attempt:
    """One attempt to do all actions of a decision: `done` and `obstacles` (by reason) say how far it came.

    While the job `is_blocked`, one pod of each role is tried before the others."""

    def __init__(self, objects: ObjectWriter, job: Job, *, is_blocked: bool) -> None:
        self._objects, self.job, self._is_blocked = objects, job, is_blocked
        self.done: list[Action] = []
        self._found: dict[str, tuple[int, Obstacle]] = {}
        self._refused_roles: set[str] = set()

    @property
    def obstacles(self) -> dict[str, Obstacle]:
        return {reason: obstacle for reason, (_, obstacle) in self._found.items()}

    async def run(self, actions: Sequence[Action]) -> None:
        """Deletes and patches, then Services and other children, then pods; the actions of each step in
        parallel."""
        for step in _steps(actions, one_pod_first=self._is_blocked):
            await _in_parallel(partial(self._do, position, action) for position, action in step)
            if self._found and any(isinstance(each, Create) and each.kind == POD_GROUP for _, each in step):
                return  # pods would wait for nothing, or join somebody else's group of that name

    def add(self, obstacle: Obstacle, position: int = -1) -> None:
        """The first action of each reason speaks for all, whichever answer comes first: else the message would
        change at each attempt."""
        known = self._found.get(obstacle.reason)
        if known is None or position < known[0]:
            self._found[obstacle.reason] = (position, obstacle)

    async def _do(self, position: int, action: Action) -> None:
        obstacle, role = None, _role_of_pod(action)
        match action:
            case Create() if role in self._refused_roles:
                return
            case Create():
                obstacle = await self._objects.create(self.job, action)
            case Amend():
                obstacle = await self._objects.amend(self.job, action)
            case Delete():
                obstacle = await self._objects.delete(self.job, action)
            case DeleteJob():
                await self._objects.delete_job(self.job)
        if obstacle is None:
            self.done.append(action)
            return
        self.add(obstacle, position)
        if role and obstacle.reason in SPEAK_FOR_ROLE:
            self._refused_roles.add(role)


async def _in_parallel(calls: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """After a failure no other call is started, but those in flight are awaited: they must not go on during the
    next reconcile."""
    slots, failed = asyncio.Semaphore(PARALLEL_WRITES), asyncio.Event()

    async def run(call: Callable[[], Awaitable[None]]) -> None:
        async with slots:
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


def _role_of_pod(action: Action) -> str:
    """The role of the pod that it creates; empty if it creates none."""
    if not isinstance(action, Create) or action.kind != "Pod":
        return ""
    return str(action.manifest["metadata"]["labels"][REPLICA_TYPE])
