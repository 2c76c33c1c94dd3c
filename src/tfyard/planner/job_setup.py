"""The setup of one job at its site: decided at its first pass, then kept in `status.cluster`."""

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Cluster, Dialect, Job, Observed, Role, ServiceMode, Task
from tfyard.model.names import POD_GROUP, QUEUE_NAME, pod_name, pod_prefix

from .indexes import expand
from .reasons import SUSPENDED
from .site import Gang, Site


class Setup(Struct, frozen=True, kw_only=True):
    services: ServiceMode = "shared"
    domain: str = ""
    dialect: Dialect = "tf2"
    ports: dict[Task, int] = {}
    gang: Gang | None = None
    """The gang scheduler of this job's pods; None: they start one by one."""
    queued: int = 0
    """Number of pods in Kueue's group; 0: Kueue does not queue this job's pods."""
    finished_without_pod: int = 0
    """Number of tasks that have finished and have no pod any more: no gang or queue may wait for them."""

    def cluster(self) -> Cluster:
        """The part of the setup that is kept in the status."""
        return Cluster(
            services=self.services,
            domain=self.domain,
            dialect=self.dialect,
            gang=self.gang.by if self.gang else None,
            queued=self.queued,
        )


def addresses(job: Job, role: Role, setup: Setup) -> list[str]:
    """The address of each task of a role, by index."""
    if setup.ports:
        return [f"127.0.0.1:{setup.ports[task]}" for task in role.tasks()]
    domain = f".{setup.domain}" if setup.domain else ""
    host = f"{job.name}.{job.namespace}" if setup.services == "shared" else job.namespace
    start, end = pod_prefix(job.name, role.name), f".{host}.svc{domain}:{role.port}"
    return [f"{start}{index}{end}" for index in range(role.replicas)]


def choose_setup(job: Job, observed: Observed, site: Site) -> Setup:
    """The setup that was decided at the job's first pass; at the first pass, what the job and the site ask for."""
    kept, setup = observed.status.cluster, _grouping(job, observed, site)
    if kept is not None:
        return replace(setup, services=kept.services, domain=kept.domain, dialect=kept.dialect)
    services, dialect = job.services or site.services, site.dialect or job.dialect
    if job.services is None and services != "per-replica" and _has_replica_services(job, observed):
        services, dialect = "per-replica", "kubeflow" if dialect == "tf2" else dialect
    return replace(setup, services=services, domain=site.domain, dialect=dialect)


def _has_replica_services(job: Job, observed: Observed) -> bool:
    """Whether another operator started this job with a Service per replica: its running pods know only those
    names, and address each other as upstream does."""
    services = {name for kind, name in observed.children if kind == "Service"}
    return bool(services) and any(pod_name(job.name, task) in services for task in job.tasks())


def _grouping(job: Job, observed: Observed, site: Site) -> Setup:
    """How this job's pods are grouped: chosen while there are none, and kept as long as there are some, because
    half a gang never has enough members."""
    kept, is_resumed = observed.status.cluster, observed.status.has(SUSPENDED)
    is_grouped = site.gang is not None or site.queues_pods or (kept is not None and kept.queued > 0)
    gone = _finished_without_pod(job, observed) if is_grouped else 0
    setup = Setup(ports=site.ports, finished_without_pod=gone)
    if kept is not None and not is_resumed:
        is_same = site.gang is not None and site.gang.by == kept.gang
        return replace(setup, gang=site.gang if is_same else None, queued=kept.queued)
    if observed.pods and not is_resumed and (POD_GROUP, job.name) not in observed.children:
        return setup  # another operator started it; a group would mean that this one did
    is_queued = site.queues_pods and QUEUE_NAME in job.labels
    return replace(setup, gang=_gang_for(job, site.gang), queued=job.size - gone if is_queued else 0)


def _gang_for(job: Job, gang: Gang | None) -> Gang | None:
    """The gang scheduler for a job. A single pod needs none, but Volcano and scheduler-plugins get a group even
    then, because their queues come with it and upstream does the same."""
    if gang is None or (gang.by == "core" and job.size == 1):
        return None
    return gang if gang.every or job.run_policy.scheduling is not None else None


def _finished_without_pod(job: Job, observed: Observed) -> int:
    memory = observed.status.tasks
    done = {
        Task(role.name, index)
        for role in job.roles
        if role.name in memory
        for index in expand(memory[role.name].finished, role.replicas)
    }
    return len(done - {pod.task for pod in observed.pods if pod.deleting is None}) if done else 0
