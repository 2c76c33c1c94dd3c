"""The operator: watches TFJobs and reconciles them by the spine until it is stopped.

Informers fill the cache and enqueue the jobs that changed; workers take them from the queue and run one pass of
the spine. All its state comes from the cluster, so an operator that is killed and started again continues where it
was.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter

from msgspec import Struct

from tfyard import kube, planner
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.events import EventRecorder
from tfyard.backends.kubernetes.last_lines import LastLines
from tfyard.backends.kubernetes.objects import ObjectWriter
from tfyard.backends.kubernetes.resources import Resources
from tfyard.backends.kubernetes.runner import ClusterRunner
from tfyard.backends.kubernetes.setup_events import SetupEvents
from tfyard.backends.kubernetes.store import ClusterStore
from tfyard.backends.kubernetes.writes import Writer

from .gang_schedulers import groups_of
from .informers import Handlers, Informers
from .job_reading import JobReader
from .metrics import Metrics
from .queue import Queue
from .reconciler import Reconciler
from .reporting import Reporter, log_lost_event, watch_options
from .worker import Worker

WORKERS = 128


class OperatorSettings(Struct, frozen=True, kw_only=True):
    site: planner.Site = planner.Site()
    namespaces: tuple[str, ...] = ()
    """Namespaces to watch; empty: all."""
    may_write: Callable[[], bool] = lambda: True
    """Whether this operator is the leader; called before every write."""


class Operator:
    """Puts the parts together. `synced` is set when all first lists have arrived."""

    def __init__(
        self, client: kube.Client, settings: OperatorSettings, jobs: Iterable[kube.Resource]
    ) -> None:
        self.settings, site = settings, settings.site
        self.resources = Resources.of(jobs, groups_of(site.gang.by) if site.gang else None)
        self.cache, self.queue, self.metrics = (
            Cache(),
            Queue[JobKey](WORKERS, attrgetter("namespace")),
            Metrics(),
        )
        self.metrics.queue_depth.set_function(self.queue.__len__)
        self.metrics.unreadable_objects.set_function(self.cache.unreadable.__len__)

        # what writes
        writer = Writer(client, settings.may_write, self._count_write)
        objects = ObjectWriter(writer, self.cache, self.resources, self.metrics.count_refused_create)
        self.events = EventRecorder(
            writer, lambda name: objects.is_creating_many(name) or not self.queue.is_idle, log_lost_event
        )
        reporter = Reporter(self.metrics, self.events, client.now)
        self.store = ClusterStore(
            writer, self.cache, self.resources, objects.is_creating_many, reporter.status_reported
        )
        self.metrics.refused_statuses.set_function(self.store.refused.__len__)
        self.last_lines = LastLines(client, self.queue.add)
        self.runner = ClusterRunner(objects, self.cache, site.backoff, SetupEvents(client), self.last_lines)

        # what reconciles jobs from the queue
        self.reconciler = Reconciler(
            JobReader(client, self.resources), self.cache, self.store, self.runner, site, reporter
        )
        self.worker = Worker(self.queue, self.cache, self.reconciler, settings.may_write, self.metrics)

        # what watches, and fills the cache and the queue
        handlers = Handlers(self.queue.add, self._forget, partial(watch_options, self.metrics))
        self.informers = Informers(client, self.cache, self.resources, settings.namespaces, handlers)
        self.synced = self.informers.changes.synced

    async def run(self) -> None:
        """Watch and reconcile until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informers.run())
            for _ in range(WORKERS):
                tasks.create_task(self.worker.run())
            tasks.create_task(self.events.run())
            tasks.create_task(self.last_lines.run())

    async def drain(self) -> None:
        """Start no more reconciles; return when those in progress are done and their events are sent."""
        await self.queue.close()
        await self.events.flush()

    def enqueue_all(self) -> None:
        """Reconcile all jobs, after this operator has become the leader."""
        self.runner.forget_obstacles()
        self.informers.changes.enqueue_all()

    def enqueue_deferred(self) -> None:
        self.worker.enqueue_deferred()

    def _count_write(self, verb: str, resource: str) -> None:
        self.metrics.api_writes.labels(verb, resource).inc()

    def _forget(self, key: JobKey, uid: str) -> None:
        self.worker.forget(key)
        self.reconciler.forget(key, uid)
