"""Creates, patches and deletes the objects of a job, one request each; what stands in the way is an Obstacle."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from tfyard.kube import (
    AlreadyExists,
    Client,
    Conflict,
    Expired,
    Forbidden,
    Kind,
    NotFound,
    Refused,
    Request,
    Unauthorized,
    Unprocessable,
    requests,
)
from tfyard.model import Amend, Create, Delete, Job, Manifest, Obstacle
from tfyard.model.backoff import Backoff
from tfyard.model.names import (
    CONTROLLER,
    OPERATOR_NAME,
    POD_GROUP,
    QUEUE_FINALIZER,
    REPLICA_INDEX,
    REPLICA_TYPE,
)

from . import lost_attempts
from .cache import Cache
from .resources import Resources, child_kind
from .views import Child, Meta, NodeView, PodView
from .writes import UNREAD, Writer

T = TypeVar("T", PodView, NodeView)

IDENTIFYING_LABELS = (OPERATOR_NAME, REPLICA_TYPE, REPLICA_INDEX)
"""The labels by which an object is watched, and a pod counted as its task's."""
QUOTA_CONFLICT, QUOTA_ATTEMPTS = Backoff(first=0.075, longest=0.3, jitter=0.67), 4
"""For a create that lost a race for its quota."""
MANY, MANY_WITHIN = 10, 0.5
"""So many objects created within so many seconds are many."""
UNEXPLAINED = (Unauthorized, Conflict, Expired, NotFound)
"""Refusals that say nothing about the object itself: they are retried, or a watch will explain them."""
DEFAULT_GRACE = 30
"""Seconds that a pod has by default to terminate; the watch soon brings the true time."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an administrator says that a machine is off."""
PODS, NODES = Kind(PodView), Kind(NodeView)


class ObjectWriter:
    def __init__(
        self, writer: Writer, cache: Cache, resources: Resources, on_refused: Callable[[str], None]
    ) -> None:
        self._writer, self._cache, self._resources = writer, cache, resources
        self._on_refused = on_refused
        self._created: deque[float] = deque(maxlen=MANY)

    def is_creating_many(self) -> bool:
        """Whether many objects are being created: what can wait should leave the server to them."""
        return len(self._created) == MANY and time.monotonic() - self._created[0] < MANY_WITHIN

    async def create(self, job: Job, action: Create, *, is_retry: bool = False) -> Obstacle | None:
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
        self._created.append(time.monotonic())
        return lost_attempts.check(action, answer.metadata)

    async def amend(self, job: Job, action: Amend) -> Obstacle | None:
        path = self._resources.of_kind(action.kind).path(job.namespace, action.name)
        try:
            await self._write("patch", action.kind, requests.patch(path, action.patch))
        except NotFound:
            return None  # it has just been deleted, and the watch will say so
        except UNEXPLAINED:
            raise
        except Refused as problem:
            return Obstacle(_reason(problem), f"cannot change {action.kind.lower()} {action.name}: {problem}")
        return None

    async def delete(self, job: Job, action: Delete) -> Obstacle | None:
        resource = self._resources.of_kind(action.kind)
        path = resource.path(job.namespace, action.name)
        if action.kind == "Pod":
            return await self._delete_pod(job, action, path)
        known = self._cache.children.of(job.uid).get((action.kind, action.name))
        uid = action.uid or (known.metadata.uid if known else "")
        await self._send_delete(resource.plural, requests.delete(path, uid))
        self._cache.children.remove(job.uid, action.kind, action.name)
        return None

    async def _delete_pod(self, job: Job, action: Delete, path: str) -> Obstacle | None:
        await self._release_from_queue(job, action)
        if action.force:
            obstacle = await _force_obstacle(self._writer.client, job.namespace, action)
            if obstacle is not None:
                return obstacle
        request = requests.delete(path, action.uid, 0 if action.force else None)
        is_gone = await self._send_delete("pods", request)
        until = None if is_gone else self._writer.client.now() + timedelta(seconds=DEFAULT_GRACE)
        self._cache.pods.mark_deleted(job.uid, action.name, action.uid, until)
        return None

    async def delete_job(self, job: Job) -> None:
        resource = self._resources.of_job(job)
        path = resource.path(job.namespace, job.name)
        await self._send_delete(resource.plural, requests.delete(path, job.uid, propagation="Background"))

    async def _create_with_retries(self, kind: str, request: Request) -> PodView | Child:
        """Another create that counts against the same quota may come first."""
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
        """The answer goes into the cache, before the watch brings it."""
        resource = self._resources.of_kind(kind).plural
        answer: PodView | Child
        if kind == "Pod":
            answer = await self._writer.send(verb, resource, request, PODS.one)
        else:
            answer = await self._writer.send(verb, resource, request, child_kind(kind).one)
        self._cache.apply_response(kind, answer)
        return answer

    async def _check_existing(self, job: Job, action: Create, *, is_retry: bool) -> Obstacle | None:
        """The name is taken. If the object is this job's, our create succeeded and only its answer was lost. Else
        the job waits for the name, from before we look: if the object is removed after that, the job is woken."""
        name = (action.kind, job.namespace, action.name)
        self._cache.taken_names.add(job.uid, name)
        obstacle = await self._existing_obstacle(job, action, is_retry=is_retry)
        if obstacle is None:
            self._cache.taken_names.discard(job.uid, name)
        return obstacle

    async def _existing_obstacle(self, job: Job, action: Create, *, is_retry: bool) -> Obstacle | None:
        path = self._resources.of_kind(action.kind).path(job.namespace, action.name)
        try:
            found = await self._get(action.kind, path)
        except NotFound:
            if not is_retry:
                return await self.create(job, action, is_retry=True)
            what = f"{action.kind.lower()} {action.name}"
            return Obstacle("NameNotYetFree", f"{what} has just been deleted")
        meta = found.metadata
        if action.adopts and _is_adoptable(action, meta):
            owners = {"uid": meta.uid, "ownerReferences": action.manifest["metadata"]["ownerReferences"]}
            return await self.amend(job, Amend(action.kind, action.name, {"metadata": owners}))
        obstacle = self._name_conflict(job, action, meta)
        if obstacle is None and action.kind == POD_GROUP and not _has_our_label(meta):
            # Upstream's: the job's, but without the labels by which a watch would find it.
            labels = {"metadata": {"labels": action.manifest["metadata"]["labels"]}}
            return await self.amend(job, Amend(action.kind, action.name, labels))
        obstacle = obstacle or _missing_label(action, meta)
        if obstacle is None:
            self._cache.apply_response(action.kind, found)
        return obstacle

    def _name_conflict(self, job: Job, action: Create, meta: Meta) -> Obstacle | None:
        """Of an object that is being deleted, or is not this job's. The objects of a deleted job will be
        collected; but a StatefulSet's pods may have such names as well."""
        what, is_owned = f"{action.kind.lower()} {action.name}", meta.owner == job.uid
        is_orphan = _has_our_label(meta) and meta.owner != "" and self._cache.key_of(meta.owner) is None
        if meta.deletion_timestamp is not None or (is_orphan and not is_owned):
            return Obstacle("NameNotYetFree", f"{what} is still being deleted")
        if is_owned:
            return None
        return Obstacle("NameTaken", f"{what} exists and is not this job's; delete or rename one of them")

    async def _get(self, kind: str, path: str) -> PodView | Child:
        request = requests.get(path)
        if kind == "Pod":
            return await self._writer.client.send(request, PODS.one)
        return await self._writer.client.send(request, child_kind(kind).one)

    async def _release_from_queue(self, job: Job, action: Delete) -> None:
        """Kueue holds a pod of a group until another replaces it; ours cannot, because it has the same name."""
        finalizers = self._cache.pods.finalizers(job.uid, action.name)
        if QUEUE_FINALIZER not in finalizers:
            return
        others = [name for name in finalizers if name != QUEUE_FINALIZER]
        patch: Manifest = {"metadata": {"uid": action.uid, "finalizers": others}}
        try:
            await self.amend(job, Amend("Pod", action.name, patch))
        except Conflict:
            return  # another pod has the name by now: nothing of it is ours to change

    async def _send_delete(self, resource: str, request: Request) -> bool:
        """True if there was nothing to delete: it is gone, or another now has the name."""
        try:
            await self._writer.send("delete", resource, request, UNREAD)
        except (NotFound, Conflict):
            return True
        return False


def _has_our_label(meta: Meta) -> bool:
    return meta.labels.get(OPERATOR_NAME) == CONTROLLER


def _is_adoptable(action: Create, meta: Meta) -> bool:
    """Upstream made it, or somebody in its stead, and nobody owns it: without an owner it is never deleted."""
    labels = action.manifest["metadata"]["labels"].items()
    is_free = not meta.owner_references and meta.deletion_timestamp is None
    return is_free and labels <= meta.labels.items()


def _missing_label(action: Create, meta: Meta) -> Obstacle | None:
    """The object is ours; but if somebody removed the labels that it is watched by, we would never see it end."""
    for key, value in action.manifest["metadata"]["labels"].items():
        if key in IDENTIFYING_LABELS and meta.labels.get(key) != value:
            kind = action.kind.lower()
            lost = (
                f"{kind} {action.name} no longer has the label {key}={value}, by which the operator finds it"
            )
            return Obstacle("LabelsMissing", f"{lost}; put it back, or delete the {kind}")
    return None


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
    or is gone. Deleted by force, it may run on where nobody sees it, and its replacement would then write to the
    same checkpoints. A node that does not answer is no proof: the network between may be all that is lost."""
    pod = await _find(client, requests.PODS.path(namespace, action.name), PODS)
    if pod is None or pod.metadata.uid != action.uid:
        return None
    try:
        reason = await _why_not(client, pod)
    except Forbidden:
        node = pod.spec.node_name
        reason = f"whether it still runs on {node} is not known, because the operator may not get nodes"
    return (
        Obstacle("PodTerminating", f"pod {action.name} is still being deleted: {reason}") if reason else None
    )


async def _why_not(client: Client, pod: PodView) -> str:
    if pod.metadata.finalizers:
        return f"it has the finalizer {pod.metadata.finalizers[0]}"
    name = pod.spec.node_name
    return why_not_by_force(pod, await _find(client, requests.NODES.path(name=name), NODES)) if name else ""


def why_not_by_force(pod: PodView, node: NodeView | None) -> str:
    """Empty: nothing of the pod runs any more. A node that is None is gone."""
    if node is None or any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
        return ""
    name = node.metadata.name
    if not any(each.type == "Ready" and each.status == "True" for each in node.status.conditions):
        return (
            f"node {name} is not ready; if the machine is off, delete the Node or taint it {OUT_OF_SERVICE}"
        )
    if not _has_ended(pod):
        return f"node {name} is ready, and has not reported the end of all its containers"
    return ""


def _has_ended(pod: PodView) -> bool:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return bool(pod.status.container_statuses) and all(each.state.terminated for each in statuses)


async def _find(client: Client, path: str, kind: Kind[T]) -> T | None:
    try:
        return await client.send(requests.get(path), kind.one)
    except NotFound:
        return None
