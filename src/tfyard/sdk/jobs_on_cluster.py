"""The TFJobs and the sweeps of a cluster as a list. A sweep is one row; its trials have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tfyard.kube import Forbidden, Removed, Snapshot, requests, sync_lists
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.sync import SyncClient
from tfyard.model.callbacks import Contact, Say
from tfyard.model.permission import Permission
from tfyard.overview import sweep_text
from tfyard.remote.reading import jobs
from tfyard.remote.sweeps import store
from tfyard.sdk import rows
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.place import Listed, silent

if TYPE_CHECKING:
    from tfyard.kube import Resource
    from tfyard.remote.sweeps.store import SweepObject
    from tfyard.sdk.place import Place


class JobsOnCluster:
    """The TFJobs of one namespace, or of all namespaces."""

    def __init__(
        self,
        connect: Callable[[], SyncClient],
        say: Say,
        *,
        selector: str = "",
        all_namespaces: bool = False,
        asks_again: bool = False,
    ) -> None:
        """`asks_again`: each place reads its job again at every question, as programs need it."""
        self._connect, self._say, self._asks_again = connect, say, asks_again
        self._selector, self._all = selector, all_namespaces

    def rows(self) -> list[Listed]:
        with self._connect() as client:
            sweeps = _sweeps(client, self._scope(client))
            listed = jobs.summaries(client, self._scope(client))
        known = {(sweep.namespace, sweep.name) for sweep in sweeps}
        of_jobs = [_row(each) for each in listed if (each.job.namespace, each.sweep) not in known]
        return sorted([*map(_sweep_row, sweeps), *of_jobs], key=lambda row: (row.job.namespace, row.job.name))

    def places(self) -> list[Place]:
        with self._connect() as client:
            sweeps = _sweeps(client, self._scope(client))
            listed = jobs.manifests(client, self._scope(client))
        known, keeps = {sweep.metadata.uid for sweep in sweeps}, None if self._asks_again else client
        of_jobs = [
            OnCluster(client.access, job, self._say, keeps) for job in listed if not job.owners & known
        ]
        if not sweeps:
            return [*of_jobs]
        from tfyard.sdk.sweep_on_cluster import SweepOnCluster  # 40 ms, which other lists do not need

        both: list[Place] = [SweepOnCluster(client.access, sweep, self._say) for sweep in sweeps]
        return sorted([*both, *of_jobs], key=lambda place: (place.namespace, place.name))

    def running(self) -> list[Place]:
        return [place for place in self.places() if _is_running(place)]

    def watch(self, contact: Contact = silent) -> Iterator[list[Listed]]:
        """Watch each API group, with its own connection."""
        from tfyard.sdk.merging import together  # 10 ms with asyncio, which lists do not need

        with self._connect() as client:
            scope = self._scope(client)
            served = jobs.served(client, scope)
            shows_sweeps = _may_watch(client, scope)
        watches = [self._watch(resource, scope, contact, shows_sweeps) for resource in served]
        if shows_sweeps:
            watches.append(self._watch_sweeps(scope, contact))
        yield from together(watches)

    def _watch(
        self, resource: Resource, scope: jobs.Scope, contact: Contact, shows_sweeps: bool
    ) -> Iterator[list[Listed]]:
        """Trials have no rows of their own beside their sweeps."""
        for changes in jobs.watch(self._connect(), resource, scope, contact):
            yield [_row(listed) for listed in changes if not (shows_sweeps and listed.sweep)]

    def _watch_sweeps(self, scope: jobs.Scope, contact: Contact) -> Iterator[list[Listed]]:
        known = dict[str, Listed]()
        path, query = requests.CONFIG_MAPS.path(scope.namespace), store.query(scope.selector)
        for event in sync_lists.watch(self._connect(), store.VIEWS, path, query, contact=contact):
            objects = event.items if isinstance(event, Snapshot) else [event.object]
            now = {each.metadata.uid: _sweep_row(each) for each in objects if each.stored}
            is_gone = isinstance(event, Removed)
            gone = [*now] if is_gone else [*known.keys() - now] if isinstance(event, Snapshot) else []
            removed = [known.pop(uid).deleted() for uid in gone if uid in known]
            changed = {} if is_gone else {uid: row for uid, row in now.items() if known.get(uid) != row}
            known |= changed
            yield [*changed.values(), *removed]

    def nothing(self) -> str:
        what = f"no TFJobs with the labels {self._selector}" if self._selector else "no TFJobs"
        if self._all:
            return f"{what} in any namespace"
        namespace = self._connect().access.namespace
        return f"{what} in the namespace {namespace}; `tfyard get -A` looks in all of them"

    def _scope(self, client: SyncClient) -> jobs.Scope:
        return jobs.Scope("" if self._all else client.access.namespace, self._selector)


def _row(listed: jobs.LocatedJob) -> Listed:
    return rows.of_tfjob(listed.title, listed.job)


def _sweep_row(sweep: SweepObject) -> Listed:
    state = sweep.state(datetime.now(UTC))
    return rows.of_sweep(f"sweep/{sweep.name}", sweep_text.row(sweep.name, sweep.namespace, state), state)


def _sweeps(client: SyncClient, scope: jobs.Scope) -> list[SweepObject]:
    """The sweeps; none, if the user may not list ConfigMaps: then their trials are shown as jobs."""
    try:
        found = store.listed(client, scope.namespace, scope.selector)
    except Forbidden:
        return []
    return [sweep for sweep in found if sweep.stored is not None]


def _may_watch(client: SyncClient, scope: jobs.Scope) -> bool:
    asked = Permission("", "configmaps", ("watch",), namespace=scope.namespace)
    return is_allowed(client.send(review(asked, "watch")))


def _is_running(place: Place) -> bool:
    state = place.sweep()
    return state.phase == "Running" if state else not place.summary().status.is_finished
