"""The operator's metrics. To add one: declare it in `Metrics`, and increment it where it happens.

Upstream's names and labels stay as they are, because dashboards and alerts use them; metrics that only tfyard has
begin with `tfyard_`. Upstream counts a restart twice, a failure by deadline not at all, and every old job as
created at each start of the operator; tfyard keeps the names, but not these errors.
"""

from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from tfyard.model import Action, Create, Delete, DeleteJob, Job, Status
from tfyard.model.names import POD_GROUP

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRAMEWORK = "tensorflow"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# This holds for the whole process, but only the operator imports this module. Upstream has no `_created` samples.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.jobs_created = self._job_counter("created")
        self.jobs_deleted = self._job_counter("deleted")
        self.jobs_successful = self._job_counter("successful")
        self.jobs_failed = self._job_counter("failed")
        self.jobs_restarted = self._job_counter("restarted")
        self.pods_created = self._counter("created_pods_total", "The total number of created pods")
        self.groups_created = self._counter(
            "created_pod_groups_total", "The total number of created pod groups"
        )
        self.groups_deleted = self._counter(
            "deleted_pod_groups_total", "The total number of deleted pod groups"
        )
        self.pods_deleted = self._counter("deleted_pods_total", "The total number of deleted pods")
        self.pods_failed = self._counter("failed_pods_total", "The total number of failed pods")
        self.services_created = self._counter(
            "succeeded_service_creation_total", "The total number of succeeded service creation"
        )
        self.services_refused = self._counter(
            "failed_service_creation_total", "The total number of failed service creation"
        )
        self.queue_depth = self._gauge("tfyard_queue_depth", "Jobs that wait to be reconciled")
        self.reconcile_seconds = self._histogram(
            "tfyard_reconcile_seconds", "How long one reconcile of a job took"
        )
        self.api_writes = self._counter("tfyard_api_writes_total", "Requests that write", "verb", "resource")
        self.watch_restarts = self._counter(
            "tfyard_watch_restarts_total", "Watches that had to be restarted", "resource"
        )
        self.is_leader = self._gauge(
            "tfyard_is_leader", "1 in the operator that is the leader, 0 in a standby"
        )
        self.without_leader = self._gauge(
            "tfyard_seconds_without_leader",
            "Seconds since an operator that leads was last seen; 0 in the leader",
        )
        self.missing_permissions = self._gauge(
            "tfyard_missing_permissions", "Permissions that the operator needs and does not have"
        )
        self.unreadable_objects = self._gauge("tfyard_unreadable_objects", "Objects that cannot be read")
        self.refused_statuses = self._gauge("tfyard_refused_statuses", "Jobs whose status the server refuses")
        self.stalled_jobs = self._gauge("tfyard_stalled_jobs", "Jobs that run and print nothing for too long")

    def render(self) -> str:
        """All metrics in Prometheus' text format, for `CONTENT_TYPE`."""
        return generate_latest(self.registry).decode()

    def count_status(self, job: Job, before: Status, after: Status) -> None:
        """Count changes of a status, so that a restarted operator does not count old jobs again."""
        if after.conditions and not before.conditions:
            self._count(self.jobs_created, job)
        if after.has("Succeeded") and not before.has("Succeeded"):
            self._count(self.jobs_successful, job)
        if after.has("Failed") and not before.has("Failed"):
            self._count(self.jobs_failed, job)
            self.pods_failed.inc(max(1, _failed(after) - _failed(before)))
        if _restarts(after) > _restarts(before):
            self._count(self.jobs_restarted, job)

    def count_actions(self, job: Job, done: Iterable[Action]) -> None:
        """Count actions that were completed, which may be fewer than were decided."""
        for action in done:
            if isinstance(action, DeleteJob):
                self._count(self.jobs_deleted, job)
            elif isinstance(action, Create | Delete):
                self._count_child(action)

    def count_refused_create(self, kind: str) -> None:
        if kind == "Service":
            self.services_refused.inc()

    def _count(self, counter: Counter, job: Job) -> None:
        counter.labels(job.namespace, FRAMEWORK).inc()

    def _count_child(self, action: Create | Delete) -> None:
        if action.kind == "Pod":
            (self.pods_created if isinstance(action, Create) else self.pods_deleted).inc()
        elif action.kind == POD_GROUP:
            (self.groups_created if isinstance(action, Create) else self.groups_deleted).inc()
        elif action.kind == "Service" and isinstance(action, Create):
            self.services_created.inc()

    def _job_counter(self, verb: str) -> Counter:
        name = f"training_operator_jobs_{verb}_total"
        return self._counter(name, f"Counts number of jobs {verb}", "job_namespace", "framework")

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(name, help, labels, registry=self.registry)

    def _histogram(self, name: str, help: str) -> Histogram:
        return Histogram(name, help, buckets=SECONDS, registry=self.registry)

    def _gauge(self, name: str, help: str) -> Gauge:
        return Gauge(name, help, registry=self.registry)


def _restarts(status: Status) -> int:
    return sum(role.restarts for role in status.replica_statuses.values())


def _failed(status: Status) -> int:
    return sum(role.failed for role in status.replica_statuses.values())
