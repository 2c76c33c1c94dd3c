"""What the watches brought: jobs by name, pods and other children by the job that owns them.

Answers to our own writes go in as well (`apply_response`), so that the next reconcile does not act on the state
before them. A watch event that is older than such an answer is ignored; and an answer that comes after the watch
went further must not bring back what is already gone.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Resource
from tfyard.model import Pod

from .pods import to_pod
from .taken_names import TakenNames
from .views import Child, JobView, Meta, PodView


class Versioned(Protocol):
    """One version of an object."""

    @property
    def uid(self) -> str: ...
    @property
    def version(self) -> str: ...


K = TypeVar("K")
V = TypeVar("V", bound=Versioned)


class JobKey(NamedTuple):
    """A job's address; two API groups may each have a job of the same name."""

    group: str
    namespace: str
    name: str


class Cache:
    """One for the whole operator: informers fill it, the runner and the store read it and add what they wrote."""

    def __init__(self) -> None:
        self.jobs: dict[JobKey, JobView] = {}
        self.pods = PodCache(lambda uid: uid in self._keys)
        self.children = ChildCache()
        self.taken_names = TakenNames()
        self._keys: dict[str, JobKey] = {}

    def key_of(self, uid: str) -> JobKey | None:
        return self._keys.get(uid)

    def has_job(self, resource: Resource, view: JobView) -> bool:
        """Whether this version is known: mostly our own status write, which comes back by the watch."""
        known = self.jobs.get(job_key(resource, view))
        return known is not None and known.metadata.uid == view.metadata.uid and is_newer(known, view)

    def put_job(self, resource: Resource, view: JobView) -> JobKey:
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is None or is_newer(view, known):
            if known is not None and known.metadata.uid != view.metadata.uid:
                self._forget(known.metadata.uid)
            self.jobs[key] = view.copy()
            self._keys[view.metadata.uid] = key
        return key

    def apply_job_response(self, resource: Resource, view: JobView) -> None:
        known = self.jobs.get(job_key(resource, view))
        if known is not None and known.metadata.uid == view.metadata.uid:
            self.put_job(resource, view)

    def drop_job(self, resource: Resource, view: JobView) -> JobKey:
        """Only this very object: a new job of the same name may be here already."""
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is not None and known.metadata.uid == view.metadata.uid:
            del self.jobs[key]
        self._forget(view.metadata.uid)
        return key

    def drop_pod(self, view: PodView) -> list[str]:
        """The uids of its owner and of the jobs that waited for its name."""
        return [self.pods.drop(view), *self.taken_names.release("Pod", view.metadata)]

    def drop_child(self, kind: str, view: Child) -> list[str]:
        """As for pods."""
        return [self.children.drop(kind, view), *self.taken_names.release(kind, view.metadata)]

    def apply_response(self, kind: str, view: PodView | Child) -> None:
        """Of a create or patch, or of a get: before the watch brings it."""
        if isinstance(view, PodView):
            self.pods.apply_response(view)
        else:
            self.children.apply_response(kind, view)

    def _forget(self, uid: str) -> None:
        self._keys.pop(uid, None)
        self.pods.forget(uid)
        self.children.forget(uid)
        self.taken_names.forget(uid)


class Owned(Generic[K, V]):
    """Objects by the uid of the job that owns them, and by name or (kind, name)."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[K, V]] = {}
        self._owner_of: dict[str, str] = {}
        """By the uid of the object."""

    def __len__(self) -> int:
        return len(self._owners)

    def of(self, owner: str) -> dict[K, V]:
        return self._owners.get(owner, {})

    def put(self, owner: str, key: K, value: V) -> None:
        known = self._owners.setdefault(owner, {})
        if key in known:
            self._owner_of.pop(known[key].uid, None)
        known[key] = value
        self._owner_of[value.uid] = owner

    def remove(self, owner: str, key: K) -> bool:
        """Whether it was there."""
        known = self._owners.get(owner, {})
        value = known.pop(key, None)
        if not known:
            self._owners.pop(owner, None)
        if value is not None:
            self._owner_of.pop(value.uid, None)
        return value is not None

    def disown(self, meta: Meta, key: K) -> str:
        """If somebody edited its ownerReferences: the uid of the owner that it had."""
        former = self._owner_of.get(meta.uid, "")
        known = self.of(former).get(key)
        if former == meta.owner or known is None or is_older(meta.resource_version, known.version):
            return ""
        self.remove(former, key)
        return former

    def forget(self, owner: str) -> None:
        for value in self._owners.pop(owner, {}).values():
            self._owner_of.pop(value.uid, None)

    def items(self) -> list[tuple[str, K, V]]:
        return [(owner, key, value) for owner, known in self._owners.items() for key, value in known.items()]


class Versions:
    """Up to which version the watch has come, for each kind in each namespace."""

    def __init__(self) -> None:
        self._watched: dict[tuple[str, str], int] = {}

    def advance(self, kind: str, meta: Meta) -> None:
        """The watch has reported this version of an object."""
        key, version = (kind, meta.namespace), meta.resource_version
        if version.isdigit():
            self._watched[key] = max(self._watched.get(key, 0), int(version))

    def is_past(self, kind: str, meta: Meta) -> bool:
        """Whether the watch has already reported whatever became of this version."""
        watched = self._watched.get((kind, meta.namespace), 0)
        return meta.resource_version.isdigit() and int(meta.resource_version) <= watched


class CachedPod(Struct, frozen=True, gc=False):
    """A pod as decisions see it: converted once, when it changes, and not at every reconcile; and small."""

    pod: Pod
    namespace: str
    version: str
    finalizers: tuple[str, ...] = ()
    is_gone: bool = False

    @property
    def uid(self) -> str:
        return self.pod.uid


class PodCache:
    """By the job that owns them. `put` and `drop` are for reports of a watch, `apply_response` and `mark_deleted`
    for what we did ourselves and the watch has not reported yet."""

    def __init__(self, is_job: Callable[[str], bool]) -> None:
        self._is_job = is_job
        """Whether a uid is that of a job."""
        self._pods = Owned[str, CachedPod]()
        self._versions = Versions()

    def __len__(self) -> int:
        """How many jobs have pods."""
        return len(self._pods)

    def of(self, owner: str) -> tuple[Pod, ...]:
        return tuple(cached.pod for cached in self._pods.of(owner).values())

    def finalizers(self, owner: str, name: str) -> tuple[str, ...]:
        cached = self._pods.of(owner).get(name)
        return cached.finalizers if cached else ()

    def disown(self, view: PodView) -> str:
        """The uid of its former owner, if it is another's now, or nobody's."""
        return self._pods.disown(view.metadata, view.metadata.name)

    def put(self, view: PodView) -> str:
        """The uid of its owner; empty if nothing changed that decisions depend on, as when our own create comes
        back."""
        self._versions.advance("Pod", view.metadata)
        return view.metadata.owner if self._keep(view) else ""

    def apply_response(self, view: PodView) -> None:
        if not self._versions.is_past("Pod", view.metadata):
            self._keep(view)

    def mark_deleted(self, owner: str, name: str, uid: str, until: datetime | None) -> None:
        """We deleted it: it is gone (None), or terminates until then. The watch reports it later; a second delete
        before that would be a useless write."""
        cached = self._pods.of(owner).get(name)
        if cached is None or cached.pod.uid != uid:
            return
        if until is None:
            self._pods.remove(owner, name)
        elif cached.pod.deleting is None:
            self._pods.put(owner, name, replace(cached, pod=replace(cached.pod, deleting=until)))

    def drop(self, view: PodView) -> str:
        """The uid of its owner. The last version may say more than the one before."""
        self._versions.advance("Pod", view.metadata)
        owner, name = view.metadata.owner, view.metadata.name
        cached = self._pods.of(owner).get(name)
        if cached is not None and cached.pod.uid == view.metadata.uid:
            self._remove(owner, name, to_pod(view, cached.pod) or cached.pod)
        return owner

    def gone(self, owner: str) -> list[str]:
        """Names of pods that are deleted, and stay for one more reconcile only."""
        return [name for name, cached in self._pods.of(owner).items() if cached.is_gone]

    def prune(self, owner: str, names: list[str]) -> None:
        """Remove these pods, if they are gone: what they had to report is written."""
        for name in names:
            cached = self._pods.of(owner).get(name)
            if cached is not None and cached.is_gone:
                self._pods.remove(owner, name)

    def replace(self, views: list[PodView], namespace: str = "") -> set[str]:
        """All pods (of a namespace), after a list. Which jobs changed is not known: every owner might have."""
        known, listed = self._pods.items(), {view.metadata.uid for view in views}
        for owner, name, cached in known:
            if namespace in ("", cached.namespace) and cached.pod.uid not in listed and not cached.is_gone:
                self._remove(owner, name, cached.pod)
        return {owner for owner, _, _ in known} | {self.put(view) for view in views}

    def forget(self, owner: str) -> None:
        self._pods.forget(owner)

    def _remove(self, owner: str, name: str, last: Pod) -> None:
        """It is deleted. A pod that had finished stays for one more reconcile: the server deletes such pods
        without a warning, and that its task is done may not be written yet. So does one that was taken away: by
        whom may not be written yet."""
        cached = self._pods.of(owner)[name]
        has_finished = last.end == "Succeeded" and not last.asked_to_stop
        if self._is_job(owner) and (has_finished or last.disrupted):
            gone = replace(last, deleting=last.deleting or datetime.now(UTC))
            self._pods.put(owner, name, replace(cached, is_gone=True, pod=gone))
        else:
            self._pods.remove(owner, name)

    def _keep(self, view: PodView) -> bool:
        """True if it says something new."""
        meta = view.metadata
        cached = self._pods.of(meta.owner).get(meta.name)
        if not meta.owner or (cached is not None and is_older(meta.resource_version, cached.version)):
            return False
        before = cached.pod if cached is not None and cached.pod.uid == meta.uid else None
        pod = to_pod(view, before)
        if pod is None:  # somebody removed its labels: it is no task's any more
            return self._pods.remove(meta.owner, meta.name)
        found = CachedPod(pod, meta.namespace, meta.resource_version, meta.finalizers)
        self._pods.put(meta.owner, meta.name, found)
        return cached is None or cached.pod != pod


class ChildCache:
    """Services, ConfigMaps, Deployments and PodGroups, by the job that owns them and by (kind, name). One that is
    gone has nothing to report, unlike a pod."""

    def __init__(self) -> None:
        self._children = Owned[tuple[str, str], Child]()
        self._versions = Versions()

    def __len__(self) -> int:
        """How many jobs have children."""
        return len(self._children)

    def of(self, owner: str) -> dict[tuple[str, str], Child]:
        return self._children.of(owner)

    def disown(self, kind: str, view: Child) -> str:
        """As for pods."""
        return self._children.disown(view.metadata, (kind, view.metadata.name))

    def put(self, kind: str, view: Child) -> str:
        """The uid of its owner; empty if nothing changed, as for pods."""
        self._versions.advance(kind, view.metadata)
        return view.metadata.owner if self._keep(kind, view) else ""

    def apply_response(self, kind: str, view: Child) -> None:
        if not self._versions.is_past(kind, view.metadata):
            self._keep(kind, view)

    def drop(self, kind: str, view: Child) -> str:
        """The uid of its owner."""
        self._versions.advance(kind, view.metadata)
        owner, key = view.metadata.owner, (kind, view.metadata.name)
        child = self._children.of(owner).get(key)
        if child is not None and child.metadata.uid == view.metadata.uid:
            self._children.remove(owner, key)
        return owner

    def remove(self, owner: str, kind: str, name: str) -> None:
        self._children.remove(owner, (kind, name))

    def replace(self, kind: str, views: list[Child], namespace: str = "") -> set[str]:
        """All of a kind (in a namespace), after a list."""
        known = self._children.items()
        for owner, key, child in known:
            if key[0] == kind and namespace in ("", child.metadata.namespace):
                self._children.remove(owner, key)
        return {owner for owner, _, _ in known} | {self.put(kind, view) for view in views}

    def forget(self, owner: str) -> None:
        self._children.forget(owner)

    def _keep(self, kind: str, view: Child) -> bool:
        """True if it says something new."""
        owner, key = view.metadata.owner, (kind, view.metadata.name)
        known = self._children.of(owner).get(key)
        if not owner or (known is not None and not is_newer(view, known)):
            return False
        self._children.put(owner, key, view)
        return known is None or known.relevant != view.relevant


def job_key(resource: Resource, view: JobView) -> JobKey:
    return JobKey(resource.group, view.metadata.namespace, view.metadata.name)


def is_newer(new: JobView | Child, old: JobView | Child) -> bool:
    return not is_older(new.metadata.resource_version, old.metadata.resource_version)


def is_older(version: str, than: str) -> bool:
    """Versions of one resource compare as numbers (so Kubernetes promises since 1.35, and etcd always did)."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)
