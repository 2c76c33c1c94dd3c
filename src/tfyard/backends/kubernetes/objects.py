"""Creates, patches and deletes the objects of a job, one request each; what prevents that is an Obstacle."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from tfyard.kube import (
    AlreadyExists,
    Client,
    Conflict,
    Expired,
    Forbidden,
    Kind,
    NotFound,
    Patch,
    Refused,
    Request,
    Unauthorized,
    Undecodable,
    Unprocessable,
    requests,
)
from tfyard.model import DEFAULT_GRACE, Amend, Create, Delete, Job, Manifest, Obstacle
from tfyard.model.backoff import Backoff
from tfyard.model.names import (
    CONTROLLER,
    OPERATOR_NAME,
    POD_GROUP,
    QUEUE_FINALIZER,
)
from tfyard.model.status import NAME_TAKEN
from tfyard.views.metadata import ObjectMeta
from tfyard.views.objects import NodeView
from tfyard.views.pods import PodView

from . import undone_writes, unreadable
from .cache import Cache
from .resources import PODS, Resources, child_kind
from .views import Child
from .writes import UNREAD, Writer

T = TypeVar("T", PodView, NodeView)

QUOTA_CONFLICT, QUOTA_ATTEMPTS = Backoff(first=0.075, longest=0.3, jitter=0.67), 4
"""Retries of a create that lost a race for its quota."""
MANY, MANY_WITHIN = 10, 0.5
"""Number of objects, created within so many seconds, that count as many."""
UNEXPLAINED = (Unauthorized, Conflict, Expired, NotFound)
"""Refusals that are not about the object itself: they are retried, or a watch will explain them."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an administrator declares that a machine is off."""
NODES = Kind(NodeView)


class ObjectWriter:
    def __init__(
        self, writer: Writer, cache: Cache, resources: Resources, on_refused: Callable[[str], None]
    ) -> None:
        self._writer, self._cache, self._resources = writer, cache, resources
        self._on_refused = on_refused
        self._created: dict[str, deque[float]] = {}
        """Namespace -> times of its last creates."""

    def now(self) -> datetime:
        """The server's time."""
        return self._writer.client.now()

    def is_creating_many(self, namespace: str) -> bool:
        """Whether many objects are being created: less urgent writes of this namespace should wait."""
        times = self._created.get(namespace)
        return times is not None and len(times) == MANY and time.monotonic() - times[0] < MANY_WITHIN

    async def create(self, job: Job, action: Create, *, is_retry: bool = False) -> Obstacle | str:
        """Creates an object; returns its uid, also if it was created before and only the answer was lost."""
        path = self._resources.of_kind(action.kind).path(job.namespace)
        try:
            answer = await self._create_with_retries(action.kind, requests.create(path, action.manifest))
        except AlreadyExists:
            return await self._check_existing(job, action, is_retry=is_retry)
        except UNEXPLAINED:
            raise
        except Refused as problem:
            self._on_refused(action.kind)
            return Obstacle(_reason(problem), f"cannot create {action.kind.lower()} {action.name}: {problem}")
        self._created.setdefault(job.namespace, deque(maxlen=MANY)).append(time.monotonic())
        changed = undone_writes.check(action, answer.metadata)
        if changed is None:
            return answer.metadata.uid
        return await self._take_back(job, Delete(action.kind, action.name, answer.metadata.uid)) or changed

    async def amend(self, job: Job, action: Amend) -> Obstacle | None:
        path = self._resources.of_kind(action.kind).path(job.namespace, action.name)
        try:
            await self._write("patch", action.kind, requests.patch(path, action.patch))
        except NotFound:
            return None  # it has just been deleted, and the watch will report that
        except UNEXPLAINED:
            raise
        except Refused as problem:
            return Obstacle(_reason(problem), f"cannot change {action.kind.lower()} {action.name}: {problem}")
        return None

    async def delete(self, job: Job, action: Delete) -> Obstacle | None:
        try:
            return await self._delete(job, action)
        except UNEXPLAINED:
            raise
        except Refused as problem:
            return Obstacle(_reason(problem), f"cannot delete {action.kind.lower()} {action.name}: {problem}")

    async def _delete(self, job: Job, action: Delete) -> Obstacle | None:
        resource = self._resources.of_kind(action.kind)
        path = resource.path(job.namespace, action.name)
        if action.kind == "Pod":
            return await self._delete_pod(job, action, path)
        child = self._cache.children.of(job.as_owner).get((action.kind, action.name))
        uid = action.uid or (child.metadata.uid if child else "")
        await self._send_delete(resource.plural, requests.delete(path, uid))
        self._cache.children.remove(job.as_owner, action.kind, action.name)
        return None

    async def _delete_pod(self, job: Job, action: Delete, path: str) -> Obstacle | None:
        await self._release_from_queue(job, action)
        if action.force:
            obstacle = await _force_obstacle(self._writer.client, job.namespace, action)
            if obstacle is not None:
                return obstacle
        request = requests.delete(path, action.uid, 0 if action.force else None)
        is_gone = await self._send_delete("pods", request)
        # The watch soon reports the pod's own grace period.
        until = None if is_gone else self.now() + timedelta(seconds=DEFAULT_GRACE)
        self._cache.pods.mark_deleted(job.as_owner, action.name, action.uid, until)
        return None

    async def _take_back(self, job: Job, action: Delete) -> Obstacle | None:
        """Deletes an object that came back changed: it would run unseen, or as another task."""
        obstacle = await self.delete(job, action)
        if obstacle is None and action.kind == "Pod":
            self._cache.pods.take_back(job.as_owner, action.name, action.uid)
        return obstacle

    async def delete_job(self, job: Job) -> None:
        resource = self._resources.of_job(job)
        path = resource.path(job.namespace, job.name)
        await self._send_delete(resource.plural, requests.delete(path, job.uid, propagation="Background"))

    async def _create_with_retries(self, kind: str, request: Request) -> PodView | Child:
        """Creates an object; retried, because another create that counts against the same quota may come first."""
        backoff = QUOTA_CONFLICT
        while True:
            try:
                return await self._write("create", kind, request)
            except Conflict:
                backoff = backoff.next()
                if backoff.failures == QUOTA_ATTEMPTS:
                    raise
                await asyncio.sleep(backoff.delay(random.random()))

    async def _write(self, verb: str, kind: str, request: Request) -> PodView | Child:
        """Writes an object; the answer goes into the cache before the watch reports it."""
        resource = self._resources.of_kind(kind).plural
        answer: PodView | Child
        if kind == "Pod":
            answer = await self._writer.send(verb, resource, request, PODS.one)
        else:
            answer = await self._writer.send(verb, resource, request, child_kind(kind).one)
        self._cache.apply_response(kind, answer)
        return answer

    async def _check_existing(self, job: Job, action: Create, *, is_retry: bool) -> Obstacle | str:
        """Handles a taken name. If the object is this job's, our create succeeded and only its answer was lost.
        Else the job waits for the name; it does so before the check, so that a removal after it wakes the job."""
        name = (action.kind, job.namespace, action.name)
        self._cache.taken_names.add(job.as_owner, name)
        existing = await self._find_existing(job, action, is_retry=is_retry)
        if isinstance(existing, str):
            self._cache.taken_names.discard(job.as_owner, name)
        return existing

    async def _find_existing(self, job: Job, action: Create, *, is_retry: bool) -> Obstacle | str:
        path = self._resources.of_kind(action.kind).path(job.namespace, action.name)
        try:
            existing = await self._get(action.kind, path)
        except Undecodable as problem:
            return unreadable.obstacle(action.kind, action.name, problem.detail)
        except NotFound:
            if not is_retry:
                return await self.create(job, action, is_retry=True)
            subject = f"{action.kind.lower()} {action.name}"
            return Obstacle("NameNotYetFree", f"{subject} has just been deleted")
        meta = existing.metadata
        if action.adopts and _is_adoptable(action, meta):
            owners = {"uid": meta.uid, "ownerReferences": action.manifest["metadata"]["ownerReferences"]}
            return await self.amend(job, Amend(action.kind, action.name, {"metadata": owners})) or meta.uid
        obstacle = self._name_conflict(job, action, meta)
        if obstacle is None and action.kind == POD_GROUP and not _has_our_label(meta):
            # Created by upstream: the job's, but without the labels by which a watch would find it.
            labels = {"metadata": {"labels": action.manifest["metadata"]["labels"]}}
            return await self.amend(job, Amend(action.kind, action.name, labels)) or meta.uid
        obstacle = obstacle or undone_writes.missing_label(action, meta)
        if obstacle is not None:
            return obstacle
        self._cache.apply_response(action.kind, existing)
        return meta.uid

    def _name_conflict(self, job: Job, action: Create, meta: ObjectMeta) -> Obstacle | None:
        """The obstacle of an object that is being deleted, or is not this job's. The objects of a deleted job will
        be collected; but a StatefulSet's pods may have such names as well."""
        subject, is_owned = f"{action.kind.lower()} {action.name}", meta.owner == job.as_owner
        is_orphan = _has_our_label(meta) and meta.owner != "" and self._cache.key_of(meta.owner) is None
        if meta.deletion_timestamp is not None or (is_orphan and not is_owned):
            return not_yet_free(action)
        if is_owned:
            return None
        return Obstacle(NAME_TAKEN, f"{subject} exists and is not this job's; delete or rename one of them")

    async def _get(self, kind: str, path: str) -> PodView | Child:
        request = requests.get(path)
        if kind == "Pod":
            return await self._writer.client.send(request, PODS.one)
        return await self._writer.client.send(request, child_kind(kind).one)

    async def _release_from_queue(self, job: Job, action: Delete) -> None:
        """Removes Kueue's finalizer. Kueue holds a pod of a group until another replaces it, which ours cannot do,
        because it has the same name."""
        if not self._cache.pods.is_queued(job.as_owner, action.name):
            return
        meta: Manifest = {"uid": action.uid, "$deleteFromPrimitiveList/finalizers": [QUEUE_FINALIZER]}
        path = requests.PODS.path(job.namespace, action.name)
        try:
            await self._write("patch", "Pod", requests.patch(path, {"metadata": meta}, Patch.STRATEGIC))
        except (NotFound, Conflict):
            return  # another pod has the name by now, and must not be changed

    async def _send_delete(self, resource: str, request: Request) -> bool:
        """Deletes; returns whether there was nothing to delete: the object is gone, or another has its name."""
        try:
            await self._writer.send("delete", resource, request, UNREAD)
        except (NotFound, Conflict):
            return True
        return False


def not_yet_free(action: Create) -> Obstacle:
    return Obstacle("NameNotYetFree", f"{action.kind.lower()} {action.name} is still being deleted")


def _has_our_label(meta: ObjectMeta) -> bool:
    return meta.labels.get(OPERATOR_NAME) == CONTROLLER


def _is_adoptable(action: Create, meta: ObjectMeta) -> bool:
    """Whether the object has no owner, so that it would never be deleted, and our labels: upstream created it."""
    labels = action.manifest["metadata"]["labels"].items()
    is_free = not meta.owner_references and meta.deletion_timestamp is None
    return is_free and labels <= meta.labels.items()


def _reason(problem: Refused) -> str:
    if isinstance(problem, Unprocessable):
        return "Invalid"
    if "NamespaceTerminating" in problem.causes:
        return "NamespaceTerminating"
    if "exceeded quota" in str(problem):
        return "QuotaExceeded"
    return "Forbidden" if isinstance(problem, Forbidden) else "Refused"  # webhooks refuse with any code


async def _force_obstacle(client: Client, namespace: str, action: Delete) -> Obstacle | None:
    """Why this pod, whose kubelet does not finish its deletion, must not be deleted by force yet; None if it may,
    or is gone. Deleted by force, it may run on unseen, and its replacement would then write to the same
    checkpoints. A node that does not answer is no proof: only the network may be down."""
    try:
        pod = await _find(client, requests.PODS.path(namespace, action.name), PODS)
    except Undecodable as problem:
        return unreadable.obstacle("Pod", action.name, problem.detail)
    if pod is None or pod.metadata.uid != action.uid:
        return None
    try:
        reason = await _why_not(client, pod)
    except (Forbidden, Undecodable) as problem:
        is_denied, name = isinstance(problem, Forbidden), pod.spec.node_name
        why = "the operator may not get nodes" if is_denied else "the node cannot be read"
        reason = f"whether it still runs on {name} is not known, because {why}"
    return (
        Obstacle("PodTerminating", f"pod {action.name} is still being deleted: {reason}") if reason else None
    )


async def _why_not(client: Client, pod: PodView) -> str:
    if pod.metadata.finalizers:
        return f"it has the finalizer {pod.metadata.finalizers[0]}"
    name = pod.spec.node_name
    return why_not_by_force(pod, await _find(client, requests.NODES.path(name=name), NODES)) if name else ""


def why_not_by_force(pod: PodView, node: NodeView | None) -> str:
    """Why a pod must not be deleted by force; empty if nothing of it runs any more. `node`: None if it is gone."""
    if node is None or any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
        return ""
    name = node.metadata.name
    if not node.is_ready:
        return (
            f"node {name} is not ready; if the machine is off, delete the Node or taint it {OUT_OF_SERVICE}"
        )
    if not _has_ended(pod):
        return f"node {name} is ready, and has not reported the end of all its containers"
    return ""


def _has_ended(pod: PodView) -> bool:
    return bool(pod.status.container_statuses) and all(each.state.terminated for each in pod.statuses)


async def _find(client: Client, path: str, kind: Kind[T]) -> T | None:
    try:
        return await client.send(requests.get(path), kind.one)
    except NotFound:
        return None
