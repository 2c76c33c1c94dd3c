"""Informers: watches fill the cache and enqueue the jobs that changed."""

import asyncio
import time
from collections.abc import Callable, Iterable

from msgspec import Struct

from tfyard import kube
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.namesakes import namesakes
from tfyard.backends.kubernetes.resources import JOBS, PODS, Resources, child_kind
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.kube import Changed, Removed, Resource, Snapshot, WatchOptions, requests
from tfyard.model.names import CONTROLLER, JOB_KINDS, OPERATOR_NAME

DEBOUNCE, INTERVAL = 0.2, 0.4
"""Seconds during which changes of pods are collected, and between two reconciles while they keep coming. With the
delay of a status (`StatusDelay`), a status is no more than a second behind the last change."""
RESYNC = 600.0
"""Seconds after which all jobs are reconciled even without a change, in case a watch missed one."""
OURS = requests.selecting({OPERATOR_NAME: CONTROLLER})


class Handlers(Struct, frozen=True):
    enqueue: Callable[[JobKey, float], None]
    """Called with the job that changed, and the seconds to wait for further changes."""
    on_deleted: Callable[[JobKey, str], None]
    """Called with the job that was deleted, and its uid."""
    watch_options: Callable[[str], WatchOptions]
    """Returns the options for watching a resource."""


class JobChanges:
    """Enqueues jobs that changed, once their namespace is listed, and not for every change of a pod."""

    def __init__(
        self, cache: Cache, enqueue: Callable[[JobKey, float], None], unsynced: set[tuple[str, str]]
    ) -> None:
        self._cache, self._enqueue = cache, enqueue
        self._unsynced = unsynced
        """(namespace, kind or group of jobs) whose first list has not arrived."""
        self._next_reconcile: dict[str, float] = {}
        self.synced = asyncio.Event()

    def set_synced(self, namespace: str, kind: str) -> None:
        """The first list has arrived. A namespace starts when all its lists have: other namespaces, where a
        permission may be missing, do not delay it."""
        if (namespace, kind) not in self._unsynced:
            return
        self._unsynced.remove((namespace, kind))
        if self._is_synced(namespace):
            self.enqueue_all(namespace)
        if not self._unsynced:
            self.synced.set()

    def enqueue_all(self, namespace: str = "") -> None:
        for key in self._cache.jobs:
            if namespace in ("", key.namespace):
                self.enqueue(key)

    def enqueue_owners(self, owners: Iterable[str], delay: float = 0.0) -> None:
        for owner in owners:
            key = self._cache.key_of(owner)
            if key is not None:
                self.enqueue(key, delay)

    def enqueue(self, key: JobKey, delay: float = 0.0) -> None:
        """Enqueue a job if its namespace is synced; when a namespace becomes so, all its jobs are enqueued."""
        if self._is_synced(key.namespace):
            self._enqueue(key, delay)

    def debounce(self, owner: str) -> None:
        """Enqueue the job of a pod, or one that was edited: soon after the first change, then at intervals."""
        if self._cache.key_of(owner) is None:
            return  # its job is deleted: `forget` would not be called again
        now, due = time.monotonic(), self._next_reconcile.get(owner, 0.0)
        if due <= now:
            due = self._next_reconcile[owner] = max(now + DEBOUNCE, due + INTERVAL)
        self.enqueue_owners([owner], due - now)

    def forget(self, owner: str) -> None:
        self._next_reconcile.pop(owner, None)

    def _is_synced(self, namespace: str) -> bool:
        return not any(unsynced in ("", namespace) for unsynced, _ in self._unsynced)


class Informers:
    def __init__(
        self,
        client: kube.Client,
        cache: Cache,
        resources: Resources,
        namespaces: tuple[str, ...],
        handlers: Handlers,
    ) -> None:
        self._client, self._cache, self._resources, self._handlers = client, cache, resources, handlers
        self._namespaces = namespaces or ("",)
        watched = ("Pod", *resources.jobs, *resources.children)
        unsynced = {(namespace, kind) for namespace in self._namespaces for kind in watched}
        self.changes = JobChanges(cache, handlers.enqueue, unsynced)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for namespace in self._namespaces:
                for resource in self._resources.jobs.values():
                    tasks.create_task(self._watch_jobs(resource, namespace))
                tasks.create_task(self._watch_pods(namespace))
                for kind in self._resources.children:
                    tasks.create_task(self._watch_children(kind, namespace))
            tasks.create_task(self._resync())

    async def _watch_jobs(self, resource: Resource, namespace: str) -> None:
        path, options = resource.path(namespace), self._handlers.watch_options("tfjobs")
        async for change in kube.watch(self._client, JOBS, path, options=options):
            match change:
                case Snapshot(items):
                    self._cache.unreadable.keep(JOB_KINDS[resource.group], namespace, items)
                    self._replace_jobs(resource, namespace, items)
                    self.changes.set_synced(namespace, resource.group)
                case Changed(view) if not self._cache.has_job(resource, view):
                    is_known = self._cache.key_of(view.as_owner) is not None
                    key = self._cache.put_job(resource, view)
                    if is_known:  # clients may edit a job many times a second
                        self.changes.debounce(view.as_owner)
                    else:
                        self.changes.enqueue(key)
                case Removed(view):
                    self._drop_job(resource, view)

    async def _watch_pods(self, namespace: str) -> None:
        path, options = requests.PODS.path(namespace), self._handlers.watch_options("pods")
        async for change in kube.watch(self._client, PODS, path, OURS, options):
            match change:
                case Snapshot(items):
                    self._cache.unreadable.keep("Pod", namespace, items)
                    self.changes.enqueue_owners(self._cache.pods.replace(items, namespace))
                    self.changes.enqueue_owners(self._cache.taken_names.waiting_for("Pod", namespace))
                    self.changes.set_synced(namespace, "Pod")
                case Changed(view):
                    self.changes.enqueue_owners([self._cache.pods.disown(view)], DEBOUNCE)
                    owner = self._cache.pods.put(view)
                    if view.metadata.deletion_timestamp is not None:  # once deleted, its exit code is lost
                        self.changes.enqueue_owners([owner], DEBOUNCE)
                    else:
                        self.changes.debounce(owner)
                case Removed(view):
                    self.changes.enqueue_owners(self._cache.drop_pod(view))

    async def _watch_children(self, kind: str, namespace: str) -> None:
        """Watch a job's other objects: one that a user deletes is created again."""
        resource, children = self._resources.children[kind], self._cache.children
        path, options = resource.path(namespace), self._handlers.watch_options(resource.plural)
        async for change in kube.watch(self._client, child_kind(kind), path, OURS, options):
            match change:
                case Snapshot(items):
                    self._cache.unreadable.keep(kind, namespace, items)
                    self.changes.enqueue_owners(children.replace(kind, items, namespace))
                    self.changes.enqueue_owners(self._cache.taken_names.waiting_for(kind, namespace))
                    self.changes.set_synced(namespace, kind)
                case Changed(view):
                    self.changes.enqueue_owners([children.disown(kind, view)], DEBOUNCE)
                    self.changes.enqueue_owners([children.put(kind, view)], DEBOUNCE)
                case Removed(view):
                    self.changes.enqueue_owners(self._cache.drop_child(kind, view))

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(RESYNC)
            self.changes.enqueue_all()

    def _replace_jobs(self, resource: Resource, namespace: str, items: list[StoredJob]) -> None:
        listed = {view.metadata.uid for view in items}
        for key, view in list(self._cache.jobs.items()):
            is_here = key.group == resource.group and namespace in ("", key.namespace)
            if is_here and view.metadata.uid not in listed:
                self._drop_job(resource, view)
        for view in items:
            self.changes.enqueue(self._cache.put_job(resource, view))

    def _drop_job(self, resource: Resource, view: StoredJob) -> None:
        key = self._cache.drop_job(resource, view)
        for other in namesakes(self._cache, key):
            self.changes.enqueue(other)
        self.changes.forget(view.as_owner)
        self._handlers.on_deleted(key, view.metadata.uid)
