"""The operator: watches TFJobs and keeps each of them going, by the spine, for as long as it may.

Watches fill the cache and put the jobs that changed into the queue; workers take them out and run one pass of
the spine. Everything that is known comes from the cluster, so an operator that is killed and started again goes
on where it was.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from tfyard import formats, kube, planner
from tfyard.backends.base import Halt
from tfyard.backends.kubernetes import Cache, ClusterRunner, ClusterStore, JobKey
from tfyard.backends.kubernetes.runner import Blocked, Broken, Unblocked, kind_of
from tfyard.backends.kubernetes.views import JobView, PodView
from tfyard.errors import Invalid
from tfyard.kube import requests
from tfyard.model import Action, Decision, Event, Job, Manifest, Problem, RunPolicy, format_path
from tfyard.model.backoff import Backoff
from tfyard.model.names import CONTROLLER, OPERATOR_NAME
from tfyard.spine import reconcile

from . import log_format
from .gang_schedulers import groups_of
from .metrics import Metrics
from .queue import Queue

log = logging.getLogger(__name__)

TFJOBS = kube.Resource("kubeflow.org", "v1", "tfjobs")
OLD_TFJOBS = kube.Resource("tensorflow.org", "v1alpha1", "tfjobs")

COALESCE, APART = 0.2, 0.4
"""Seconds that changes of pods are gathered, and between two looks while they keep coming. With the rest that
counts are given before they are written, a status is no more than a second behind the last change."""
WORKERS = 64
ANNOUNCERS = 4
"""Events under way at the same time; few, so that pods and statuses have the connections."""
RESYNC = 600.0
EVENTS_LIVE = 3600.0
"""Servers forget events after an hour, unless told otherwise; what is still true then is said again."""
WATCH_RETRY = Backoff(first=0.5, longest=10.0, jitter=0.5)
"""Jobs wait for the few watches that an operator has, and an apiserver that comes back can bear them."""
DENIED = (kube.Unauthorized, kube.Forbidden, kube.NotFound)
"""Answers to a watch that will be the same next time, until a person does something; said once."""
EXPECTED = {"NamespaceTerminating"}
"""Why events are refused without anybody having to care."""


class NotLeading(Exception):
    """Another operator leads now: whatever was about to be written is its business."""


class Settings(Struct, frozen=True, kw_only=True):
    site: planner.Site = planner.Site()
    namespaces: tuple[str, ...] = ()
    """Empty: all of them."""
    may_write: Callable[[], bool] = lambda: True
    """Whether we lead; asked before every single write."""


class Operator:
    def __init__(self, client: kube.Client, settings: Settings, resources: Iterable[kube.Resource]) -> None:
        self.client, self.settings = client, settings
        self.resources = {resource.group: resource for resource in resources}
        self.cache, self.queue = Cache(), Queue[JobKey]()
        self.store = ClusterStore(client, self.cache, self.resources, self._guard)
        self.runner = ClusterRunner(client, self.cache, self.resources, self._guard)
        if settings.site.gang is not None:
            self.runner.use_groups(groups_of(settings.site.gang))
        self.metrics = Metrics()
        self.runner.on_refused = self.metrics.count_refused_create
        self.store.on_report = lambda job, before, decision: self.metrics.count_status(
            job, before, decision.status
        )
        self.store.on_lost_event = _log_lost_event
        self.store.is_busy = lambda: self.runner.in_rush() or not self.queue.is_idle
        self.store.in_rush = self.runner.in_rush
        self._jobs: dict[JobKey, tuple[JobView, Job]] = {}
        self._due: dict[str, float] = {}
        self._unsynced: set[tuple[str, str]] = set()
        """(place, what is there) whose first list has not come."""
        self._put_off: set[JobKey] = set()
        self._distrusted: dict[str, tuple[Event, float]] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for place in self.settings.namespaces or ("",):
                for resource in self.resources.values():
                    self._begin(tasks, place, resource.group, self._watch_jobs(resource, place))
                self._begin(tasks, place, "Pod", self._watch_pods(place))
                for kind in self.runner.children:
                    self._begin(tasks, place, kind, self._watch_children(kind, place))
            for _ in range(WORKERS):
                tasks.create_task(self._work())
            for _ in range(ANNOUNCERS):
                tasks.create_task(self._announce())
            tasks.create_task(self._resync())

    async def wind_down(self) -> None:
        """No more looks; returns when those under way are over, and what they have to tell is told."""
        await self.queue.close()
        await self.store.all_said()

    # What is there.

    def _begin(self, tasks: asyncio.TaskGroup, place: str, what: str, watching: Any) -> None:
        self._unsynced.add((place, what))
        tasks.create_task(watching, name=f"{what} {place}")

    def _patience(self, resource: str) -> kube.WatchOptions:
        known: list[str] = []

        def told(problem: kube.KubeError | None) -> None:
            self.metrics.watch_restarts.labels(resource).inc()
            if isinstance(problem, DENIED):
                if known != [str(problem)]:
                    log.warning("cannot watch %s, and waits until it can: %s", resource, problem)
            elif problem is not None:
                log.info("the watch on %s was interrupted: %s", resource, problem)
            known[:] = [str(problem)]

        return kube.WatchOptions(backoff=WATCH_RETRY, retry_first_list=True, on_interrupt=told)

    def _has_synced(self, place: str, what: str) -> None:
        """A place where all is known begins; others, where a right is missing say, do not keep it waiting."""
        if (place, what) not in self._unsynced:
            return
        self._unsynced.remove((place, what))
        if not self._is_unknown(place):
            self.look_at_everything(place)
        if not self._unsynced:
            self.synced.set()

    def _is_unknown(self, place: str) -> bool:
        return any(where in ("", place) for where, _ in self._unsynced)

    async def _watch_jobs(self, resource: kube.Resource, place: str) -> None:
        patience = self._patience("tfjobs")
        async for news in kube.watch(self.client, kube.Kind(JobView), resource.path(place), None, patience):
            match news:
                case kube.Snapshot(items):
                    self._replace_jobs(resource, place, items)
                    self._has_synced(place, resource.group)
                case kube.Changed(view) if not self.cache.knows_job(resource, view):
                    self._line_up(self.cache.put_job(resource, view))
                case kube.Removed(view):
                    self._forget(self.cache.drop_job(resource, view), view)

    def _replace_jobs(self, resource: kube.Resource, place: str, items: list[JobView]) -> None:
        there = {view.metadata.uid for view in items}
        for key, view in list(self.cache.jobs.items()):
            if (
                key.group == resource.group
                and place in ("", key.namespace)
                and view.metadata.uid not in there
            ):
                self._forget(self.cache.drop_job(resource, view), view)
        for view in items:
            self._line_up(self.cache.put_job(resource, view))

    def _forget(self, key: JobKey, view: JobView) -> None:
        self.queue.reset_backoff(key)
        if key not in self.cache.jobs:
            self._put_off.discard(key)
        self._jobs.pop(key, None)
        self._due.pop(view.metadata.uid, None)
        self._distrusted.pop(view.metadata.uid, None)
        self.runner.forget(view.metadata.uid)
        self.store.forget(view.metadata.uid)

    async def _watch_pods(self, place: str) -> None:
        path, query = requests.PODS.path(place), requests.selecting({OPERATOR_NAME: CONTROLLER})
        async for news in kube.watch(self.client, kube.Kind(PodView), path, query, self._patience("pods")):
            match news:
                case kube.Snapshot(items):
                    self._touch(self.cache.replace_pods(items, place))
                    self._has_synced(place, "Pod")
                case kube.Changed(view):
                    owner = self.cache.put_pod(view)
                    if owner and view.metadata.deletion_timestamp is not None:
                        self._touch([owner], COALESCE)  # soon: gone, it could not tell any more why it ended
                    elif owner:
                        self._gather(owner)
                case kube.Removed(view):
                    self._touch([self.cache.drop_pod(view)])

    async def _watch_children(self, kind: str, place: str) -> None:
        """What else a job has: whoever deletes it by hand gets it back."""
        resource = self.runner.children[kind]
        path, query = resource.path(place), requests.selecting({OPERATOR_NAME: CONTROLLER})
        patience = self._patience(resource.plural)
        async for news in kube.watch(self.client, kind_of(kind), path, query, patience):
            match news:
                case kube.Snapshot(items):
                    self._touch(self.cache.replace_children(kind, items, place))
                    self._has_synced(place, kind)
                case kube.Changed(view):
                    self._touch([self.cache.put_child(kind, view)], COALESCE)
                case kube.Removed(view):
                    self._touch([self.cache.drop_child(kind, view)])

    def _gather(self, owner: str) -> None:
        """The first change is seen soon, so that a short job is seen to run; a stream of them now and then."""
        if self.cache.key_of(owner) is None:
            return  # its job is gone, and its turn would be kept for ever
        now, due = time.monotonic(), self._due.get(owner, 0.0)
        if due <= now:
            due = self._due[owner] = max(now + COALESCE, due + APART)
        self._touch([owner], due - now)

    def _touch(self, owners: Iterable[str], delay: float = 0.0) -> None:
        for uid in owners:
            key = self.cache.key_of(uid)
            if key is not None:
                self._line_up(key, delay)

    def _line_up(self, key: JobKey, delay: float = 0.0) -> None:
        """Unless its pods are not known yet; once all is known at its place, everybody there is looked at."""
        if not self._is_unknown(key.namespace):
            self.queue.add(key, delay)

    async def _resync(self) -> None:
        """Now and then look without a reason: a net below the watches, which costs no write."""
        while True:
            await asyncio.sleep(RESYNC)
            self.look_at_everything()

    def look_at_everything(self, place: str = "") -> None:
        for key in self.cache.jobs:
            if place in ("", key.namespace):
                self._line_up(key)

    def catch_up(self) -> None:
        """Look at what came while writing was not ours: a lapse may be too short for anybody to notice."""
        while self._put_off:
            self.queue.add(self._put_off.pop())

    # What is done about it.

    def _guard(self, verb: str, resource: str) -> None:
        if not self.settings.may_write():
            raise NotLeading
        self.metrics.api_writes.labels(verb, resource).inc()

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            began = time.monotonic()
            with log_format.about(key.namespace, key.name):
                try:
                    await self._look(key)
                except Unblocked:
                    self.queue.reset_backoff(key)
                    self.queue.add(key)
                except (kube.KubeError, Blocked, Broken, NotLeading) as problem:
                    pause = self.queue.retry(key)
                    log.info("will look again in %.1f s: %s", pause, problem or type(problem).__name__)
                except Exception:  # a job that we do not understand must not end the work on all others
                    log.exception("will look again in %.1f s", self.queue.retry(key))
                finally:
                    self.queue.done(key)
                    self.metrics.reconcile_seconds.observe(time.monotonic() - began)

    async def _announce(self) -> None:
        while True:
            with suppress(NotLeading):
                await self.store.announce()

    async def _look(self, key: JobKey) -> None:
        view = self.cache.jobs.get(key)
        if view is None:
            self.queue.reset_backoff(key)
            return
        if not self.settings.may_write():
            self._put_off.add(key)
            return
        try:
            job = self._read(key, view)
        except Invalid as error:
            await self._refuse(view, error.problems)
            return
        gone = self.cache.gone(job.uid)
        try:
            decision = await reconcile(job, self.store, self.runner, self.settings.site, datetime.now(UTC))
        except Invalid as error:  # what it remembers, not what it asks for
            self._distrust(job, view, error.problems)
            return
        except Halt as halt:
            self._narrate(job, halt.done)
            if halt.done:
                self.queue.reset_backoff(key)  # it goes on, if slowly
            self._wake(key, halt.wake_after)
            raise
        self._distrusted.pop(job.uid, None)
        self.cache.bury(job.uid, gone)
        self.queue.reset_backoff(key)
        if decision.status.is_finished:
            self._jobs.pop(key, None)
            self.store.forget(job.uid)
        self._narrate(job, decision.actions)
        self._wake(key, decision.wake_after, self.store.due_in(job.uid))

    def _wake(self, key: JobKey, *pauses: float | None) -> None:
        for pause in pauses:
            if pause is not None:
                self.queue.add(key, pause + 0.01)

    def _narrate(self, job: Job, done: Sequence[Action]) -> None:
        self.metrics.count_actions(job, done)
        for event in planner.narrate(done):
            self.store.tell(job, event)

    def _read(self, key: JobKey, view: JobView) -> Job:
        """Read once for as long as it goes on: its pods change often, what it asks for hardly ever."""
        known = self._jobs.get(key)
        if known is None or not known[0].is_same_job(view):
            known = self._jobs[key] = (view, _load(view))
        return known[1]

    async def _refuse(self, view: JobView, problems: tuple[Problem, ...]) -> None:
        """A job that cannot be read has failed; it says everything that is wrong with it, once."""
        job = Job(
            name=view.metadata.name,
            namespace=view.metadata.namespace,
            uid=view.metadata.uid,
            generation=view.metadata.generation,
            api_version=view.api_version,
            kind=view.kind,
            run_policy=RunPolicy(managed_by=_keeper(view)),
        )
        try:
            before = formats.load_status(view.remembered())
        except Invalid as error:
            self._distrust(job, view, error.problems)
            return
        if before.is_finished or planner.is_hands_off(job, view.metadata.deletion_timestamp is not None):
            return
        after, event = planner.refuse(job, before, _told(problems), datetime.now(UTC))
        await self.store.report(job, before, Decision(status=after, events=(event,)))

    def _distrust(self, job: Job, view: JobView, problems: tuple[Problem, ...]) -> None:
        """Said where its owner looks, and not at each look. Whoever mends it is heard by the watch."""
        if planner.is_hands_off(job, view.metadata.deletion_timestamp is not None):
            return
        event, now = planner.distrust(job, _told(problems)), time.monotonic()
        before, since = self._distrusted.get(job.uid, (None, now))
        if event != before or now - since > EVENTS_LIVE:
            self._distrusted[job.uid] = event, now
            log.warning("nothing is done about it, its status cannot be read: %s", "; ".join(_told(problems)))
            self.store.tell(job, event)


def _load(view: JobView) -> Job:
    try:
        return formats.load(view.document())
    except RecursionError:
        raise Invalid([Problem(("spec",), "is nested too deeply to be read")]) from None


def _keeper(view: JobView) -> str | None:
    """Who keeps this job, though nothing else of it may be readable."""
    try:
        spec = view.document()["spec"]
    except RecursionError:
        return None
    policy = spec.get("runPolicy") if isinstance(spec, dict) else None
    found = policy.get("managedBy") if isinstance(policy, dict) else None
    return found if isinstance(found, str) else None


def _told(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{format_path(p.path)}: {p.message}" + (f" ({p.fix})" if p.fix else "") for p in problems]


def _log_lost_event(event: Manifest, problem: kube.KubeError) -> None:
    """A namespace that is being deleted takes none, which is nothing to worry about."""
    whose, expected = event["involvedObject"], isinstance(problem, kube.Refused) and problem.causes & EXPECTED
    level = logging.DEBUG if expected else logging.WARNING
    text = "event %s of %s/%s was not taken: %s"
    log.log(level, text, event["reason"], whose["namespace"], whose["name"], problem)
