"""What the watches brought: jobs by name, pods and other children by the job that owns them.

Answers to our own writes go in as well (`apply_response`), so that the next reconcile does not act on the state
before them. A watch event that is older than such an answer is ignored; and an answer that comes after the watch
went further must not bring back what is already gone.
"""

from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Resource
from tfyard.model import Pod

from .views import Child, JobView, Meta, PodView, to_pod

K = TypeVar("K")
V = TypeVar("V")


class JobKey(NamedTuple):
    """A job's address; two API groups may each have a job of the same name."""

    group: str
    namespace: str
    name: str


class Cache:
    def __init__(self) -> None:
        self.jobs: dict[JobKey, JobView] = {}
        self.pods = PodCache()
        self.children = ChildCache()
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
        """Only that very object: a new job of the same name may be here already."""
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is not None and known.metadata.uid == view.metadata.uid:
            del self.jobs[key]
        self._forget(view.metadata.uid)
        return key

    def drop_pod(self, view: PodView) -> str:
        """The uid of its owner."""
        return self.pods.drop(view, keep_succeeded=view.metadata.owner in self._keys)

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


class Owned(Generic[K, V]):
    """Objects by the uid of the job that owns them, and by name or (kind, name)."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[K, V]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def of(self, owner: str) -> dict[K, V]:
        return self._owners.get(owner, {})

    def put(self, owner: str, key: K, value: V) -> None:
        self._owners.setdefault(owner, {})[key] = value

    def remove(self, owner: str, key: K) -> bool:
        """Whether it was there."""
        known = self._owners.get(owner, {})
        was_there = known.pop(key, None) is not None
        if not known:
            self._owners.pop(owner, None)
        return was_there

    def forget(self, owner: str) -> None:
        self._owners.pop(owner, None)

    def items(self) -> list[tuple[str, K, V]]:
        return [(owner, key, value) for owner, known in self._owners.items() for key, value in known.items()]


class Versions:
    """Up to which version a watch has reported each kind in each namespace."""

    def __init__(self) -> None:
        self._watched: dict[tuple[str, str], int] = {}

    def watched(self, kind: str, meta: Meta) -> None:
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


class PodCache:
    def __init__(self) -> None:
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

    def put(self, view: PodView) -> str:
        """The uid of its owner; empty if nothing changed that decisions depend on, as when our own create comes
        back."""
        self._versions.watched("Pod", view.metadata)
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

    def drop(self, view: PodView, *, keep_succeeded: bool) -> str:
        """The uid of its owner. A pod that had succeeded stays for one more reconcile: the server deletes finished
        pods without a warning, and that its task is done may not be written yet."""
        self._versions.watched("Pod", view.metadata)
        owner, name = view.metadata.owner, view.metadata.name
        cached = self._pods.of(owner).get(name)
        if cached is None or cached.pod.uid != view.metadata.uid:
            return owner
        if cached.pod.phase == "Succeeded" and keep_succeeded:
            pod = replace(cached.pod, deleting=datetime.now(UTC))
            self._pods.put(owner, name, replace(cached, is_gone=True, pod=pod))
        else:
            self._pods.remove(owner, name)
        return owner

    def gone(self, owner: str) -> list[str]:
        """Names of pods that are deleted, and stay for one more reconcile only."""
        return [name for name, cached in self._pods.of(owner).items() if cached.is_gone]

    def prune(self, owner: str, names: list[str]) -> None:
        """Remove gone pods: what they had to report is written."""
        for name in names:
            cached = self._pods.of(owner).get(name)
            if cached is not None and cached.is_gone:
                self._pods.remove(owner, name)

    def replace(self, views: list[PodView], namespace: str = "") -> set[str]:
        """All pods (of a namespace), after a list. Which jobs changed is not known: every owner might have."""
        known = self._pods.items()
        for owner, name, cached in known:
            if namespace in ("", cached.namespace):
                self._pods.remove(owner, name)
        return {owner for owner, _, _ in known} | {self.put(view) for view in views}

    def forget(self, owner: str) -> None:
        self._pods.forget(owner)

    def _keep(self, view: PodView) -> bool:
        """True if it says something new."""
        meta, pod = view.metadata, to_pod(view)
        cached = self._pods.of(meta.owner).get(meta.name)
        if not meta.owner or (cached is not None and is_older(meta.resource_version, cached.version)):
            return False
        if pod is None:  # somebody removed its labels: it is no task's any more
            return self._pods.remove(meta.owner, meta.name)
        found = CachedPod(pod, meta.namespace, meta.resource_version, meta.finalizers)
        self._pods.put(meta.owner, meta.name, found)
        return cached is None or cached.pod != pod


class ChildCache:
    """Services, ConfigMaps, Deployments and PodGroups, by (kind, name)."""

    def __init__(self) -> None:
        self._children = Owned[tuple[str, str], Child]()
        self._versions = Versions()

    def __len__(self) -> int:
        """How many jobs have children."""
        return len(self._children)

    def of(self, owner: str) -> dict[tuple[str, str], Child]:
        return self._children.of(owner)

    def put(self, kind: str, view: Child) -> str:
        """The uid of its owner; empty if nothing changed, as for pods."""
        self._versions.watched(kind, view.metadata)
        return view.metadata.owner if self._keep(kind, view) else ""

    def apply_response(self, kind: str, view: Child) -> None:
        if not self._versions.is_past(kind, view.metadata):
            self._keep(kind, view)

    def drop(self, kind: str, view: Child) -> str:
        """The uid of its owner."""
        self._versions.watched(kind, view.metadata)
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
