"""What the watches have told: jobs by name, pods and Services by the job that owns them."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Resource
from tfyard.model import Pod

from .views import Child, JobView, Meta, PodView, to_pod


class JobKey(NamedTuple):
    """A job's address; two API groups may each have a job of the same name."""

    group: str
    namespace: str
    name: str


class KnownPod(Struct, frozen=True, gc=False):
    """A pod as decisions see it: read once, when it changes, and not at every look; and small."""

    pod: Pod
    namespace: str
    version: str
    finalizers: tuple[str, ...] = ()
    gone: bool = False


class Cache:
    """Answers of our own writes are heard at once (`hear_…`), so that the next look does not act on the world
    before them; a watch event that is older than such an answer is then passed over. And the other way round:
    an answer that comes after the watch told more must not bring back what is gone already."""

    def __init__(self) -> None:
        self.jobs: dict[JobKey, JobView] = {}
        self.pods: dict[str, dict[str, KnownPod]] = defaultdict(dict)
        self.children: dict[str, dict[tuple[str, str], Child]] = defaultdict(dict)
        self._keys: dict[str, JobKey] = {}
        self._told: dict[tuple[str, str], int] = {}
        """Up to which version a watch has told of a kind in a namespace."""

    def key_of(self, uid: str) -> JobKey | None:
        return self._keys.get(uid)

    def knows_job(self, resource: Resource, view: JobView) -> bool:
        """Whether this is old news: mostly our own status write, which comes back by the watch."""
        known = self.jobs.get(job_key(resource, view))
        return known is not None and known.metadata.uid == view.metadata.uid and is_newer(known, view)

    def pods_of(self, uid: str) -> tuple[Pod, ...]:
        return tuple(known.pod for known in self.pods.get(uid, {}).values())

    def put_job(self, resource: Resource, view: JobView) -> JobKey:
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is None or is_newer(view, known):
            if known is not None and known.metadata.uid != view.metadata.uid:
                self._forget(known.metadata.uid)
            self.jobs[key] = view.copy()
            self._keys[view.metadata.uid] = key
        return key

    def hear_job(self, resource: Resource, view: JobView) -> None:
        known = self.jobs.get(job_key(resource, view))
        if known is not None and known.metadata.uid == view.metadata.uid:
            self.put_job(resource, view)

    def drop_job(self, resource: Resource, view: JobView) -> JobKey:
        """Only that very object: its successor of the same name may be here already."""
        key = job_key(resource, view)
        known = self.jobs.get(key)
        if known is not None and known.metadata.uid == view.metadata.uid:
            del self.jobs[key]
        self._forget(view.metadata.uid)
        return key

    def put_pod(self, view: PodView) -> str:
        """Whose it is; empty if that changes nothing that decisions depend on, like our own create come back."""
        self._note("Pod", view.metadata)
        return view.metadata.owner if self._keep_pod(view) else ""

    def hear_pod(self, view: PodView) -> None:
        if not self._has_told("Pod", view.metadata):
            self._keep_pod(view)

    def send_off(self, owner: str, name: str, uid: str, until: datetime | None) -> None:
        """A pod that we deleted: gone, or going until then. The watch tells later; a second delete before that
        would be a write for nothing."""
        known = self.pods.get(owner, {}).get(name)
        if known is None or known.pod.uid != uid:
            return
        if until is None:
            del self.pods[owner][name]
        elif known.pod.deleting is None:
            self.pods[owner][name] = replace(known, pod=replace(known.pod, deleting=until))

    def drop_pod(self, view: PodView) -> str:
        """One that had succeeded stays in sight for one more look: the server deletes finished pods without a
        warning, and that its task is done may be written nowhere yet."""
        self._note("Pod", view.metadata)
        owner, name = view.metadata.owner, view.metadata.name
        there = self.pods.get(owner, {}).get(name)
        if there is None or there.pod.uid != view.metadata.uid:
            return owner
        if there.pod.phase == "Succeeded" and owner in self._keys:
            self.pods[owner][name] = replace(
                there, gone=True, pod=replace(there.pod, deleting=datetime.now(UTC))
            )
        else:
            self._remove(owner, name)
        return owner

    def gone(self, owner: str) -> list[str]:
        """Names of pods that are no more, and are seen for the last time."""
        return [name for name, there in self.pods.get(owner, {}).items() if there.gone]

    def bury(self, owner: str, names: list[str]) -> None:
        """What they had to tell is written."""
        for name in names:
            if (there := self.pods.get(owner, {}).get(name)) is not None and there.gone:
                self._remove(owner, name)

    def _remove(self, owner: str, name: str) -> None:
        del self.pods[owner][name]
        if not self.pods[owner]:
            del self.pods[owner]

    def put_child(self, kind: str, view: Child) -> str:
        """Whose it is; empty if that changes nothing, as for pods."""
        self._note(kind, view.metadata)
        return view.metadata.owner if self._keep_child(kind, view) else ""

    def hear_child(self, kind: str, view: Child) -> None:
        if not self._has_told(kind, view.metadata):
            self._keep_child(kind, view)

    def drop_child(self, kind: str, view: Child) -> str:
        self._note(kind, view.metadata)
        owner, key = view.metadata.owner, (kind, view.metadata.name)
        known = self.children.get(owner, {})
        if (child := known.get(key)) is not None and child.metadata.uid == view.metadata.uid:
            del known[key]
        if not known:
            self.children.pop(owner, None)
        return owner

    def replace_pods(self, views: list[PodView], namespace: str = "") -> set[str]:
        """All of them (of a namespace), after a list; whose pods changed is not known: everybody's might have."""
        before = set(self.pods)
        for known in self.pods.values():
            for name in [name for name, there in known.items() if namespace in ("", there.namespace)]:
                del known[name]
        touched = before | {self.put_pod(view) for view in views}
        for owner in [owner for owner in before if not self.pods[owner]]:
            del self.pods[owner]
        return touched

    def replace_children(self, kind: str, views: list[Child], namespace: str = "") -> set[str]:
        before = set(self.children)
        for known in self.children.values():
            for key in [
                k for k, c in known.items() if k[0] == kind and namespace in ("", c.metadata.namespace)
            ]:
                del known[key]
        touched = before | {self.put_child(kind, view) for view in views}
        for owner in [owner for owner in before if not self.children[owner]]:
            del self.children[owner]
        return touched

    def _keep_pod(self, view: PodView) -> bool:
        """True if it says something new."""
        meta, pod = view.metadata, to_pod(view)
        known = self.pods.get(meta.owner, {}).get(meta.name)
        if not meta.owner or (known is not None and is_older(meta.resource_version, known.version)):
            return False
        if pod is None:  # somebody took its labels: it is no task's any more
            return self.pods.get(meta.owner, {}).pop(meta.name, None) is not None
        found = KnownPod(pod, meta.namespace, meta.resource_version, meta.finalizers)
        self.pods[meta.owner][meta.name] = found
        return known is None or known.pod != pod

    def _keep_child(self, kind: str, view: Child) -> bool:
        """True if it says something new."""
        owner, key = view.metadata.owner, (kind, view.metadata.name)
        known = self.children.get(owner, {}).get(key)
        if not owner or (known is not None and not is_newer(view, known)):
            return False
        self.children[owner][key] = view
        return known is None or known.essence != view.essence

    def _note(self, kind: str, meta: Meta) -> None:
        key, version = (kind, meta.namespace), meta.resource_version
        if version.isdigit():
            self._told[key] = max(self._told.get(key, 0), int(version))

    def _has_told(self, kind: str, meta: Meta) -> bool:
        """Whatever became of this version since, the watch said it."""
        told = self._told.get((kind, meta.namespace), 0)
        return meta.resource_version.isdigit() and int(meta.resource_version) <= told

    def _forget(self, uid: str) -> None:
        self._keys.pop(uid, None)
        self.pods.pop(uid, None)
        self.children.pop(uid, None)


def job_key(resource: Resource, view: JobView) -> JobKey:
    return JobKey(resource.group, view.metadata.namespace, view.metadata.name)


def is_newer(new: JobView | Child, old: JobView | Child) -> bool:
    return not is_older(new.metadata.resource_version, old.metadata.resource_version)


def is_older(version: str, than: str) -> bool:
    """Versions of one resource compare as numbers (so Kubernetes promises since 1.35, and etcd always did)."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)
