"""The objects that the watches reported: jobs by name, pods and other children by the job that owns them.

Answers to our own writes go in as well (`apply_response`), so that the next reconcile does not act on the state
before them. A watch event that is older than such an answer is ignored; and a late answer must not bring back an
object whose removal the watch has already reported.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Resource
from tfyard.model import Pod
from tfyard.model.names import JOB_KINDS, QUEUE_FINALIZER, is_name_of, pod_name
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import PodView

from .cache_parts import Owned, TakenNames, Versions, is_older
from .pods import has_unwritten_end, read_pod
from .unreadable import UnreadableObjects, problem_of
from .views import Child, StoredJob


class JobKey(NamedTuple):
    """A job's address; two API groups may each have a job of the same name."""

    group: str
    namespace: str
    name: str


class Cache:
    """The operator's only cache: informers fill it, the runner and the store read it and add their writes."""

    def __init__(self) -> None:
        self.jobs: dict[JobKey, StoredJob] = {}
        self._keys: dict[str, JobKey] = {}
        """Jobs as owners -> their keys."""
        self.unreadable = UnreadableObjects()
        self.pods = PodCache(self._keys.__contains__, self.unreadable)
        self.children = ChildCache(self._keys.__contains__, self.unreadable)
        self.taken_names = TakenNames()

    def key_of(self, owner: str) -> JobKey | None:
        return self._keys.get(owner)

    def has_job(self, resource: Resource, view: StoredJob) -> bool:
        """Whether this version is known: mostly our own status write, which comes back by the watch."""
        known = self.jobs.get(job_key(resource, view))
        return known is not None and known.metadata.uid == view.metadata.uid and is_newer(known, view)

    def put_job(self, resource: Resource, view: StoredJob) -> JobKey:
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is None or is_newer(view, known):
            if known is not None and known.metadata.uid != view.metadata.uid:
                self._forget(known.as_owner)
            if (problem := problem_of(view)) or problem_of(known):
                self.unreadable.note(JOB_KINDS[resource.group], view.metadata, problem)
            self.jobs[key] = view
            self._keys[view.as_owner] = key
        return key

    def apply_job_response(self, resource: Resource, view: StoredJob) -> None:
        known = self.jobs.get(job_key(resource, view))
        if known is not None and known.metadata.uid == view.metadata.uid:
            self.put_job(resource, view)

    def drop_job(self, resource: Resource, view: StoredJob) -> JobKey:
        """Drops only this object: a new job of the same name may be cached already."""
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is not None and known.metadata.uid == view.metadata.uid:
            del self.jobs[key]
            self.unreadable.note(JOB_KINDS[resource.group], view.metadata, "")
        self._forget(view.as_owner)
        return key

    def drop_pod(self, view: PodView) -> list[str]:
        """Returns its owner and the jobs that waited for its name."""
        return [self.pods.drop(view), *self.taken_names.release("Pod", view.metadata)]

    def drop_child(self, kind: str, view: Child) -> list[str]:
        """Drops a child; returns the same as for pods."""
        return [self.children.drop(kind, view), *self.taken_names.release(kind, view.metadata)]

    def apply_response(self, kind: str, view: PodView | Child) -> None:
        """Stores the answer to a create, patch or get, before the watch reports it."""
        if isinstance(view, PodView):
            self.pods.apply_response(view)
        else:
            self.children.apply_response(kind, view)

    def leftovers(self, namespace: str) -> set[tuple[str, str]]:
        """(kind, name) of the objects of deleted jobs: they have their names until they are gone."""
        return {*self.pods.leftovers(namespace), *self.children.leftovers(namespace)}

    def _forget(self, owner: str) -> None:
        """Forgets a job. Its objects stay until the watch reports that they are gone."""
        self._keys.pop(owner, None)
        self.pods.forget_gone(owner)
        self.taken_names.forget(owner)


class CachedPod(Struct, frozen=True, gc=False):
    """A pod as decisions need it: small, and converted once when it changes, not at every reconcile."""

    pod: Pod
    namespace: str
    version: str
    is_queued: bool = False
    """Whether it has Kueue's finalizer."""
    is_gone: bool = False
    is_deleted_here: bool = False  # by this operator

    @property
    def uid(self) -> str:
        return self.pod.uid


class PodCache:
    """Pods by the job that owns them. `put` and `drop` are for reports of a watch, `apply_response` and
    `mark_deleted` for our own writes that the watch has not reported yet."""

    def __init__(self, is_job: Callable[[str], bool], unreadable: UnreadableObjects) -> None:
        self._is_job = is_job
        """Tells whether an owner is a job that exists."""
        self._unreadable = unreadable
        self._pods = Owned[str, CachedPod]()
        self._taken_back: dict[str, dict[str, str]] = {}
        """Owner -> name of a pod -> uid of the last one of that name that was taken back."""
        self._versions = Versions()

    def __len__(self) -> int:
        """Number of jobs that have pods."""
        return len(self._pods)

    def of(self, owner: str) -> tuple[Pod, ...]:
        return tuple(cached.pod for cached in self._pods.of(owner).values())

    def is_queued(self, owner: str, name: str) -> bool:
        cached = self._pods.of(owner).get(name)
        return cached is not None and cached.is_queued

    def disown(self, view: PodView) -> str:
        """A pod's former owner, if it has another now, or none."""
        return self._pods.disown(view.metadata, view.metadata.name)

    def put(self, view: PodView) -> str:
        """Stores a pod; returns its owner, or nothing if no field changed that decisions depend on, as
        when the watch reports our own create."""
        self._versions.advance("Pod", view.metadata)
        return view.metadata.owner if self._keep(view) else ""

    def apply_response(self, view: PodView) -> None:
        if not self._versions.is_past("Pod", view.metadata):
            self._keep(view)

    def take_back(self, owner: str, name: str, uid: str) -> None:
        """Forgets a pod that came back changed from its create, and ignores what the watch still reports of it: it
        never was a task's, so its end is none. A watch by labels may never report that it is gone."""
        self._taken_back.setdefault(owner, {})[name] = uid
        self.mark_deleted(owner, name, uid, None)

    def mark_deleted(self, owner: str, name: str, uid: str, until: datetime | None) -> None:
        """Notes our own delete: the pod is gone (None), or terminates until then. The watch reports it later; a
        second delete before that would be a useless write."""
        cached = self._pods.of(owner).get(name)
        if cached is None or cached.pod.uid != uid:
            return
        if until is None:
            self._pods.remove(owner, name)
            return
        pod = replace(cached.pod, deleting=cached.pod.deleting or until)
        self._pods.put(owner, name, replace(cached, pod=pod, is_deleted_here=True))

    def drop(self, view: PodView) -> str:
        """Drops a pod; returns its owner. The last version may have news."""
        self._versions.advance("Pod", view.metadata)
        self._unreadable.note("Pod", view.metadata, "")
        owner, name = view.metadata.owner, view.metadata.name
        cached = self._pods.of(owner).get(name)
        if cached is not None and cached.pod.uid == view.metadata.uid:
            self._remove(owner, name, read_pod(view, cached.pod) or cached.pod)
        return owner

    def gone(self, owner: str) -> list[str]:
        """Names of deleted pods that stay for one more reconcile."""
        return [name for name, cached in self._pods.of(owner).items() if cached.is_gone]

    def prune(self, owner: str, names: list[str]) -> None:
        """Removes these pods, if they are gone: their ends are written."""
        for name in names:
            cached = self._pods.of(owner).get(name)
            if cached is not None and cached.is_gone:
                self._pods.remove(owner, name)

    def replace(self, views: list[PodView], namespace: str = "") -> set[str]:
        """Replaces all pods (of a namespace) after a list; returns all owners: any of them may have changed."""
        known, listed = self._pods.items(), {view.metadata.uid for view in views}
        for owner, name, cached in known:
            if namespace in ("", cached.namespace) and cached.pod.uid not in listed and not cached.is_gone:
                self._remove(owner, name, cached.pod)
        return {owner for owner, _, _ in known} | {self.put(view) for view in views}

    def forget_gone(self, owner: str) -> None:
        self.prune(owner, self.gone(owner))
        self._taken_back.pop(owner, None)

    def leftovers(self, namespace: str) -> Iterator[tuple[str, str]]:
        others = self._pods.of_others(self._is_job)
        return (("Pod", name) for name, cached in others if cached.namespace == namespace)

    def _remove(self, owner: str, name: str, last: Pod) -> None:
        """Removes a deleted pod. If its end may not be written yet, it stays for one more reconcile."""
        cached = self._pods.of(owner)[name]
        if self._is_job(owner) and has_unwritten_end(last, is_deleted_here=cached.is_deleted_here):
            gone = replace(last, deleting=last.deleting or datetime.now(UTC))
            self._pods.put(owner, name, replace(cached, is_gone=True, pod=gone))
        else:
            self._pods.remove(owner, name)

    def _keep(self, view: PodView) -> bool:
        """Stores a pod; returns whether it has news for decisions."""
        meta = view.metadata
        cached = self._pods.of(meta.owner).get(meta.name)
        if cached is not None and is_older(meta.resource_version, cached.version):
            return False
        if self._taken_back.get(meta.owner, {}).get(meta.name) == meta.uid:
            return False
        same = cached if cached is not None and cached.pod.uid == meta.uid else None
        pod = read_pod(view, same.pod if same else None)
        self._unreadable.note("Pod", meta, pod.unreadable if pod else problem_of(view))
        if pod is None or not _is_named_by(meta, pod):  # its labels were removed: it is no task's any more
            return self._pods.remove(meta.owner, meta.name)
        is_ours = same is not None and same.is_deleted_here
        is_queued = QUEUE_FINALIZER in meta.finalizers
        stored = CachedPod(
            pod, meta.namespace, meta.resource_version, is_queued=is_queued, is_deleted_here=is_ours
        )
        self._pods.put(meta.owner, meta.name, stored)
        return cached is None or cached.pod != pod


class ChildCache:
    """Services, ConfigMaps, Deployments and PodGroups, by the job that owns them and by (kind, name). Unlike a
    pod, one that is gone has nothing to report."""

    def __init__(self, is_job: Callable[[str], bool], unreadable: UnreadableObjects) -> None:
        self._is_job, self._unreadable = is_job, unreadable
        self._children = Owned[tuple[str, str], Child]()
        self._versions = Versions()

    def __len__(self) -> int:
        """Number of jobs that have children."""
        return len(self._children)

    def of(self, owner: str) -> dict[tuple[str, str], Child]:
        return self._children.of(owner)

    def disown(self, kind: str, view: Child) -> str:
        """A child's former owner, as for pods."""
        return self._children.disown(view.metadata, (kind, view.metadata.name))

    def put(self, kind: str, view: Child) -> str:
        """Stores a child; returns its owner, or nothing if no field changed, as for pods."""
        self._versions.advance(kind, view.metadata)
        return view.metadata.owner if self._keep(kind, view) else ""

    def apply_response(self, kind: str, view: Child) -> None:
        if not self._versions.is_past(kind, view.metadata):
            self._keep(kind, view)

    def drop(self, kind: str, view: Child) -> str:
        """Drops a child; returns its owner."""
        self._versions.advance(kind, view.metadata)
        self._unreadable.note(kind, view.metadata, "")
        owner, key = view.metadata.owner, (kind, view.metadata.name)
        child = self._children.of(owner).get(key)
        if child is not None and child.metadata.uid == view.metadata.uid:
            self._children.remove(owner, key)
        return owner

    def remove(self, owner: str, kind: str, name: str) -> None:
        self._children.remove(owner, (kind, name))

    def replace(self, kind: str, views: list[Child], namespace: str = "") -> set[str]:
        """Replaces all children of a kind (in a namespace) after a list."""
        known = self._children.items()
        for owner, key, child in known:
            if key[0] == kind and namespace in ("", child.metadata.namespace):
                self._children.remove(owner, key)
        return {owner for owner, _, _ in known} | {self.put(kind, view) for view in views}

    def leftovers(self, namespace: str) -> Iterator[tuple[str, str]]:
        others = self._children.of_others(self._is_job)
        return (key for key, child in others if child.metadata.namespace == namespace)

    def _keep(self, kind: str, view: Child) -> bool:
        """Stores a child; returns whether it has news for decisions."""
        meta, job = view.metadata, view.metadata.job
        owner, key = meta.owner, (kind, meta.name)
        known = self._children.of(owner).get(key)
        is_own = job is not None and is_name_of(job.name, meta.name)
        if known is not None and not is_newer(view, known):
            return False
        self._unreadable.note(kind, meta, problem_of(view))
        if not is_own:
            return False
        few = replace(meta, labels={}, annotations={}, owner_references=(), finalizers=())
        self._children.put(owner, key, replace(view, metadata=few))
        return known is None or _differ(known.relevant, view.relevant)


def _differ(old: object, new: object) -> bool:
    try:
        return old != new
    except RecursionError:  # users may nest the spec of a PodGroup deeper than Python can follow
        return True


def _is_named_by(meta: ObjectMeta, pod: Pod) -> bool:
    """Whether a pod has the name of its task: others may have the labels of one, too."""
    return meta.job is not None and pod.name == pod_name(meta.job.name, pod.task)


def job_key(resource: Resource, view: StoredJob) -> JobKey:
    return JobKey(resource.group, view.metadata.namespace, view.metadata.name)


def is_newer(new: StoredJob | Child, old: StoredJob | Child) -> bool:
    return not is_older(new.metadata.resource_version, old.metadata.resource_version)
