"""A cluster as a PodRunner: what the cache knows is observed, what was decided is created and deleted."""

import asyncio
import random
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from tfyard import formats
from tfyard.backends.base import Halt
from tfyard.kube import (
    AlreadyExists,
    Client,
    Conflict,
    Expired,
    Forbidden,
    Kind,
    KubeError,
    NotFound,
    Refused,
    Resource,
    ServerFault,
    Unauthorized,
    Unprocessable,
    requests,
)
from tfyard.model import Action, Amend, Create, Delete, DeleteJob, Job, Observed, Obstacle
from tfyard.model.backoff import Backoff
from tfyard.model.names import (
    CONTROLLER,
    OPERATOR_NAME,
    POD_GROUP,
    QUEUE_FINALIZER,
    REPLICA_INDEX,
    REPLICA_TYPE,
)

from .cache import Cache, JobKey
from .store import Guard
from .views import Child, GroupView, Meta, PodView, to_group

CHILDREN = {
    "Service": requests.SERVICES,
    "ConfigMap": requests.CONFIG_MAPS,
    "Deployment": Resource("apps", "v1", "deployments"),
}
"""What a job has beside its pods: made by us, watched by us."""
RESOURCES = {"Pod": requests.PODS, **CHILDREN}
KNOWN_BY = (OPERATOR_NAME, REPLICA_TYPE, REPLICA_INDEX)
"""The labels by which an object is watched, and a pod counted as its task's."""
AT_ONCE = 32
"""Writes of one job under way at the same time: a large job must leave room for the others."""
QUOTA_CONFLICT, QUOTA_ATTEMPTS = Backoff(first=0.075, longest=0.3, jitter=0.67), 4
"""For a create that lost a race for its quota."""
HOPELESS = {"QuotaExceeded", "Forbidden", "NamespaceTerminating", "Refused"}
"""What one pod is refused for, the next would be refused for as well: they are not all tried."""
FAULTS = 3
"""So often in a row the server may fail at something before that is told as what stands in the way."""
RUSH, RUSH_WITHIN = 10, 0.5
"""So many things made within so many seconds are a rush."""
UNEXPLAINED = (Unauthorized, Conflict, Expired, NotFound)
"""Refusals that say nothing about the object itself; they pass, or the watches will tell."""
DEFAULT_GRACE = 30
"""Seconds that a pod has by default to end; the watch soon tells the true time."""


class Blocked(Halt):
    """Something stands in the way of this job; it is known by now, and worth another try later."""


class Unblocked(Halt):
    """What stood in the way is gone: worth another look at once, for it must be said."""


class Broken(Halt):
    """The server did not answer as it should, which may be over at the next try."""


class ClusterRunner:
    def __init__(self, client: Client, cache: Cache, resources: dict[str, Resource], guard: Guard) -> None:
        self._client, self._cache, self._resources, self._guard = client, cache, resources, guard
        self.children = CHILDREN
        self._pods = Kind(PodView)
        self._obstacles: dict[str, tuple[Obstacle, ...]] = defaultdict(tuple)
        self._made: deque[float] = deque(maxlen=RUSH)
        self._faults: dict[str, int] = {}
        self.on_refused: Callable[[str], None] = lambda _kind: None

    def use_groups(self, resource: Resource) -> None:
        """Whose PodGroups jobs get here."""
        self.children = {**self.children, POD_GROUP: resource}

    def in_rush(self) -> bool:
        """Whether many things are being made: what can wait should leave the server to them."""
        return len(self._made) == RUSH and time.monotonic() - self._made[0] < RUSH_WITHIN

    async def observe(self, job: Job) -> Observed:
        view = self._cache.jobs[_key(job)]
        children = self._cache.children.get(job.uid, {})
        group = children.get((POD_GROUP, job.name))
        return Observed(
            status=formats.load_status(view.remembered()),
            pods=self._cache.pods_of(job.uid),
            children=frozenset(children),
            group=to_group(group) if group else None,
            obstacles=self._obstacles.get(job.uid, ()),
            deleting=view.metadata.deletion_timestamp is not None,
        )

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        found: dict[str, Obstacle] = {}
        done: list[Action] = []
        try:
            await self._do_all(job, actions, found, done)
        except KubeError as problem:
            self._stumble(job, problem, found)
            if not found:
                raise Broken(str(problem), done) from problem
        else:
            self._faults.pop(job.uid, None)
        self._conclude(job, found, done)

    async def _do_all(
        self, job: Job, actions: Sequence[Action], found: dict[str, Obstacle], done: list[Action]
    ) -> None:
        """Names before those who answer to them, departures before arrivals; each kind at once."""
        for turn in _in_turn(actions):
            await _all(partial(self._do, job, action, found, done) for action in turn)
            if found and any(isinstance(action, Create) and action.kind == POD_GROUP for action in turn):
                return  # pods would wait for nothing, or join a stranger's group of that name

    def _conclude(self, job: Job, found: dict[str, Obstacle], done: list[Action]) -> None:
        before = self._obstacles.pop(job.uid, ())
        if self._cache.key_of(job.uid) is None:
            return  # deleted meanwhile: nobody waits for it, and nobody would forget it once more
        if found:
            self._obstacles[job.uid] = tuple(found[reason] for reason in sorted(found))
            raise Blocked(next(iter(found.values())).message, done)
        if before:
            raise Unblocked("nothing stands in the way any more", done)

    def forget(self, uid: str) -> None:
        self._obstacles.pop(uid, None)
        self._faults.pop(uid, None)

    def _stumble(self, job: Job, problem: KubeError, found: dict[str, Obstacle]) -> None:
        """A webhook that cannot be called is a fault of the server's as well, which somebody should hear of."""
        if isinstance(problem, ServerFault):
            faults = self._faults[job.uid] = self._faults.get(job.uid, 0) + 1
            if faults >= FAULTS:
                found["ServerFault"] = Obstacle("ServerFault", f"the server failed {faults} times: {problem}")

    async def _do(self, job: Job, action: Action, found: dict[str, Obstacle], done: list[Action]) -> None:
        obstacle = None
        match action:
            case Create() if action.kind == "Pod" and HOPELESS & found.keys():
                return
            case Create():
                obstacle = await self._create(job, action)
            case Amend():
                obstacle = await self._amend(job, action)
            case Delete():
                await self._delete(job, action)
            case DeleteJob():
                resource = self._resources[job.api_version.partition("/")[0]]
                await self._send_delete(resource.path(job.namespace, job.name), job.uid, "Background")
        if obstacle is None:
            done.append(action)
        else:
            found.setdefault(obstacle.reason, obstacle)

    async def _create(self, job: Job, action: Create) -> Obstacle | None:
        resource = self._resource(action.kind)
        request = requests.create(resource.path(job.namespace), action.manifest)
        self._guard("create", resource.plural)
        try:
            self._keep(action.kind, await self._insist(action.kind, request))
        except AlreadyExists:
            return await self._inspect(job, action)
        except UNEXPLAINED:
            raise
        except Refused as problem:
            self.on_refused(action.kind)
            return Obstacle(_reason(problem), f"cannot create {action.kind.lower()} {action.name}: {problem}")
        self._made.append(time.monotonic())
        return None

    async def _insist(self, kind: str, request: requests.Request) -> PodView | Child:
        """Another create that counts against the same quota may come first."""
        backoff = QUOTA_CONFLICT
        while True:
            try:
                return await self._read(kind, request)
            except Conflict:
                backoff = backoff.next()
                if backoff.failures == QUOTA_ATTEMPTS:
                    raise
                await asyncio.sleep(backoff.delay(random.random()))

    async def _amend(self, job: Job, action: Amend) -> Obstacle | None:
        resource = self._resource(action.kind)
        request = requests.patch(resource.path(job.namespace, action.name), action.patch)
        self._guard("patch", resource.plural)
        try:
            self._keep(action.kind, await self._read(action.kind, request))
        except NotFound:
            return None  # it has just gone, and the watch will say so
        except UNEXPLAINED:
            raise
        except Refused as problem:
            return Obstacle(_reason(problem), f"cannot change {action.kind.lower()} {action.name}: {problem}")
        return None

    def _resource(self, kind: str) -> Resource:
        return RESOURCES.get(kind) or self.children[kind]

    async def _read(self, kind: str, request: requests.Request) -> PodView | Child:
        if kind == "Pod":
            return await self._client.send(request, self._pods.one)
        return await self._client.send(request, kind_of(kind).one)

    def _keep(self, kind: str, there: PodView | Child) -> None:
        """Know it before the watch tells it."""
        if isinstance(there, PodView):
            self._cache.hear_pod(there)
        else:
            self._cache.hear_child(kind, there)

    async def _inspect(self, job: Job, action: Create) -> Obstacle | None:
        """The name is taken. By us: our answer got lost, and it is done. By one that is going: wait. By a
        stranger: say so."""
        what = f"{action.kind.lower()} {action.name}"
        path = self._resource(action.kind).path(job.namespace, action.name)
        try:
            there = await self._read(action.kind, requests.get(path))
        except NotFound:
            return Obstacle("NameNotYetFree", f"{what} has just gone")
        meta = there.metadata
        if meta.owner == job.uid and meta.deletion_timestamp is None:
            if action.kind == POD_GROUP and not _is_ours(meta):
                return await self._adopt(job, action)
            return self._recognize(action, there)
        if meta.deletion_timestamp is not None or self._is_left_over(meta):
            return Obstacle("NameNotYetFree", f"{what} is still being deleted")
        return Obstacle("NameTaken", f"{what} exists and is not this job's; delete or rename one of them")

    async def _adopt(self, job: Job, action: Create) -> Obstacle | None:
        """Upstream's PodGroups are the job's, but have no labels by which a watch would find them."""
        labels = action.manifest["metadata"]["labels"]
        return await self._amend(job, Amend(action.kind, action.name, {"metadata": {"labels": labels}}))

    def _recognize(self, action: Create, there: PodView | Child) -> Obstacle | None:
        """It is ours; but somebody may have edited away what it is watched and counted by, and nobody would ever
        hear how it ends."""
        for key, value in action.manifest["metadata"]["labels"].items():
            if key in KNOWN_BY and there.metadata.labels.get(key) != value:
                kind = action.kind.lower()
                lost = f"{kind} {action.name} has no longer the label {key}={value}, by which it is known"
                return Obstacle("LabelsMissing", f"{lost}; put it back, or delete the {kind}")
        self._keep(action.kind, there)
        return None

    def _is_left_over(self, meta: Meta) -> bool:
        """Of a job that is gone, so it will be collected; a StatefulSet's pods may have such names as well."""
        return _is_ours(meta) and meta.owner != "" and self._cache.key_of(meta.owner) is None

    async def _delete(self, job: Job, action: Delete) -> None:
        path = self._resource(action.kind).path(job.namespace, action.name)
        uid = action.uid or self._uid_of_child(job, action)
        if action.kind == "Pod":
            await self._release(job, action)
        gone = await self._send_delete(path, uid, "", 0 if action.force else None)
        if action.kind == "Pod":
            until = None if gone else datetime.now(UTC) + timedelta(seconds=DEFAULT_GRACE)
            self._cache.send_off(job.uid, action.name, action.uid, until)
        else:
            self._cache.children.get(job.uid, {}).pop((action.kind, action.name), None)

    async def _release(self, job: Job, action: Delete) -> None:
        """Kueue holds a pod of a group until another takes its place; ours cannot, for it has the same name."""
        known = self._cache.pods.get(job.uid, {}).get(action.name)
        if known is None or QUEUE_FINALIZER not in known.finalizers:
            return
        others = [name for name in known.finalizers if name != QUEUE_FINALIZER]
        patch = {"metadata": {"uid": action.uid, "finalizers": others}}
        try:
            await self._amend(job, Amend("Pod", action.name, patch))
        except Conflict:
            return  # another has the name by now: nothing of it is ours to change

    async def _send_delete(self, path: str, uid: str, propagation: str, grace: int | None = None) -> bool:
        """True if there was nothing to delete: it is gone, or another now has the name."""
        self._guard("delete", path.rsplit("/", 2)[-2])
        try:
            await self._client.send(requests.delete(path, uid, grace, propagation))
        except (NotFound, Conflict):
            return True
        return False

    def _uid_of_child(self, job: Job, action: Delete) -> str:
        known = self._cache.children.get(job.uid, {}).get((action.kind, action.name))
        return known.metadata.uid if known else ""


def kind_of(kind: str) -> Kind[Child]:
    """How a child of this kind is read: of a group more is known than that it exists."""
    return _GROUPS if kind == POD_GROUP else _OTHERS


_GROUPS: Kind[Child] = Kind(GroupView)
_OTHERS = Kind(Child)


def _is_ours(meta: Meta) -> bool:
    return meta.labels.get(OPERATOR_NAME) == CONTROLLER


def _key(job: Job) -> JobKey:
    return JobKey(job.api_version.partition("/")[0], job.namespace, job.name)


def _reason(problem: Refused) -> str:
    if isinstance(problem, Unprocessable):
        return "Invalid"
    if "NamespaceTerminating" in problem.causes:
        return "NamespaceTerminating"
    if "exceeded quota" in str(problem):
        return "QuotaExceeded"
    return "Forbidden" if isinstance(problem, Forbidden) else "Refused"  # webhooks say no with any code


async def _all(deeds: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """AT_ONCE at a time. After a failure no other is begun, but those under way are waited for: they must not go
    on behind the next pass."""
    seats, failed = asyncio.Semaphore(AT_ONCE), asyncio.Event()

    async def do(deed: Callable[[], Awaitable[None]]) -> None:
        async with seats:
            if failed.is_set():
                return
            try:
                await deed()
            except BaseException:
                failed.set()
                raise

    for problem in await asyncio.gather(*map(do, deeds), return_exceptions=True):
        if problem is not None:
            raise problem


def _in_turn(actions: Sequence[Action]) -> list[list[Action]]:
    turns: tuple[list[Action], ...] = ([], [], [])
    for action in actions:
        turns[0 if not isinstance(action, Create) else 2 if action.kind == "Pod" else 1].append(action)
    return [turn for turn in turns if turn]
