"""A cluster as a PodRunner: observes what the cache knows, and applies what was decided."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from tfyard import formats
from tfyard.kube import KubeError, ServerFault
from tfyard.model import Action, Amend, Create, Delete, DeleteJob, Job, Observed, Obstacle, Outcome
from tfyard.model.names import POD_GROUP

from .cache import Cache, JobKey
from .objects import ObjectWriter
from .views import to_group

PARALLEL_WRITES = 32
"""Writes of one job at the same time: a large job must leave room for the others."""
HOPELESS = {"QuotaExceeded", "Forbidden", "NamespaceTerminating", "Refused"}
"""If one pod is refused for these reasons, the next would be as well: they are not all tried."""
FAULTS = 3
"""After so many failures of the server in a row, that is reported as an obstacle."""


class ClusterRunner:
    def __init__(self, objects: ObjectWriter, cache: Cache) -> None:
        self._objects, self._cache = objects, cache
        self._obstacles: dict[str, tuple[Obstacle, ...]] = {}
        self._faults: dict[str, int] = {}

    async def observe(self, job: Job) -> Observed:
        view = self._cache.jobs[JobKey(job.api_version.partition("/")[0], job.namespace, job.name)]
        children = self._cache.children.of(job.uid)
        group = children.get((POD_GROUP, job.name))
        return Observed(
            status=formats.load_status(view.status_document()),
            pods=self._cache.pods.of(job.uid),
            children=frozenset(children),
            group=to_group(group) if group else None,
            obstacles=self._obstacles.get(job.uid, ()),
            deleting=view.metadata.deletion_timestamp is not None,
        )

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        attempt = Attempt(self._objects, job)
        try:
            await attempt.run(actions)
        except KubeError as problem:
            self._count_fault(attempt, problem)
            if not attempt.obstacles:
                return Outcome(done=tuple(attempt.done), error=str(problem))
        else:
            self._faults.pop(job.uid, None)
        return self._remember(attempt)

    def forget(self, uid: str) -> None:
        self._obstacles.pop(uid, None)
        self._faults.pop(uid, None)

    def _count_fault(self, attempt: "Attempt", problem: KubeError) -> None:
        """A webhook that cannot be called is a fault of the server as well, and somebody should know of it."""
        if isinstance(problem, ServerFault):
            uid = attempt.job.uid
            faults = self._faults[uid] = self._faults.get(uid, 0) + 1
            if faults >= FAULTS:
                attempt.add(Obstacle("ServerFault", f"the server failed {faults} times: {problem}"))

    def _remember(self, attempt: "Attempt") -> Outcome:
        """The next decision reports the obstacles, or that there are none any more."""
        uid, done = attempt.job.uid, tuple(attempt.done)
        before = self._obstacles.pop(uid, ())
        if self._cache.key_of(uid) is None:
            return Outcome(done=done)  # the job was deleted meanwhile: `forget` has already been called
        obstacles = tuple(obstacle for _, obstacle in sorted(attempt.obstacles.items()))
        if obstacles:
            self._obstacles[uid] = obstacles
        return Outcome(done=done, obstacles=obstacles, is_unblocked=bool(before and not obstacles))


class Attempt:
    """One attempt to do all actions of a decision: `done` and `obstacles` (by reason) say how far it came."""

    def __init__(self, objects: ObjectWriter, job: Job) -> None:
        self._objects, self.job = objects, job
        self.done: list[Action] = []
        self.obstacles: dict[str, Obstacle] = {}

    async def run(self, actions: Sequence[Action]) -> None:
        """Deletes and patches, then Services and other children, then pods; the actions of each step in
        parallel."""
        for step in _steps(actions):
            await _in_parallel(partial(self._do, action) for action in step)
            if self.obstacles and any(isinstance(each, Create) and each.kind == POD_GROUP for each in step):
                return  # pods would wait for nothing, or join somebody else's group of that name

    def add(self, obstacle: Obstacle) -> None:
        """The first of each reason speaks for all."""
        self.obstacles.setdefault(obstacle.reason, obstacle)

    async def _do(self, action: Action) -> None:
        obstacle = None
        match action:
            case Create() if action.kind == "Pod" and HOPELESS & self.obstacles.keys():
                return
            case Create():
                obstacle = await self._objects.create(self.job, action)
            case Amend():
                obstacle = await self._objects.amend(self.job, action)
            case Delete():
                await self._objects.delete(self.job, action)
            case DeleteJob():
                await self._objects.delete_job(self.job)
        if obstacle is None:
            self.done.append(action)
        else:
            self.add(obstacle)


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


def _steps(actions: Sequence[Action]) -> list[list[Action]]:
    steps: tuple[list[Action], ...] = ([], [], [])
    for action in actions:
        steps[0 if not isinstance(action, Create) else 2 if action.kind == "Pod" else 1].append(action)
    return [step for step in steps if step]
