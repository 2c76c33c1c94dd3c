"""What the operator counts: upstream's metrics by their names, and our own."""

from .metrics import Counter, Gauge, Histogram, Registry

FRAMEWORK = "tensorflow"
JOB_LABELS = ("job_namespace", "framework")


class JobCounter(Counter):
    """One of upstream's counters of jobs: by namespace, and for us always of the one framework."""

    def __init__(self, verb: str) -> None:
        name = f"training_operator_jobs_{verb}_total"
        super().__init__(name, f"Counts number of jobs {verb}", JOB_LABELS)

    def count(self, namespace: str) -> None:
        self.inc(namespace, FRAMEWORK)


class Metrics:
    """One of each. Upstream counts a restart twice, a failure by deadline not at all, and every old job as
    created whenever it starts: the names are kept here, not that."""

    def __init__(self) -> None:
        self.jobs_created = JobCounter("created")
        self.jobs_deleted = JobCounter("deleted")
        self.jobs_successful = JobCounter("successful")
        self.jobs_failed = JobCounter("failed")
        self.jobs_restarted = JobCounter("restarted")
        self.pods_created = Counter("created_pods_total", "The total number of created pods")
        self.groups_created = Counter("created_pod_groups_total", "The total number of created pod groups")
        self.groups_deleted = Counter("deleted_pod_groups_total", "The total number of deleted pod groups")
        self.pods_deleted = Counter("deleted_pods_total", "The total number of deleted pods")
        self.pods_failed = Counter("failed_pods_total", "The total number of failed pods")
        self.services_created = Counter(
            "succeeded_service_creation_total", "The total number of succeeded service creation"
        )
        self.services_refused = Counter(
            "failed_service_creation_total", "The total number of failed service creation"
        )
        self.queue_depth = Gauge("tfyard_queue_depth", "Jobs that wait to be looked at")
        self.reconcile_seconds = Histogram("tfyard_reconcile_seconds", "How long one look at a job took")
        self.api_writes = Counter("tfyard_api_writes_total", "Requests that write", ("verb", "resource"))
        self.watch_restarts = Counter(
            "tfyard_watch_restarts_total", "Watches that had to begin again", ("resource",)
        )
        self.is_leader = Gauge("tfyard_is_leader", "1 in the operator that leads, 0 in a standby")
        self.registry = Registry()
        self.registry.add(*(each for each in vars(self).values() if not isinstance(each, Registry)))

    def render(self) -> str:
        return self.registry.render()
