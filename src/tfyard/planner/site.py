"""Where a job happens. All that differs between a laptop and a cluster is in here."""

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Cluster, Dialect, GangScheduler, Job, Observed, Role, ServiceMode, Task
from tfyard.model.names import DEFAULT_IMAGE, POD_GROUP, QUEUE_NAME, pod_name, pod_prefix

from .indexes import expand
from .reasons import SUSPENDED


class DriverMount(Struct, frozen=True, rename="camel"):
    name: str
    host_path: str
    mount_path: str


class DriverEnv(Struct, frozen=True):
    name: str
    value: str


class Accelerator(Struct, frozen=True, rename="camel"):
    """What a container that asks for this device also needs, on clusters without a device plugin."""

    volumes: tuple[DriverMount, ...] = ()
    env_vars: tuple[DriverEnv, ...] = ()


class Gang(Struct, frozen=True, kw_only=True):
    """Who starts all pods of a job or none, and by which name pods ask for it."""

    by: GangScheduler
    scheduler: str = ""
    """The pods' schedulerName; empty: the cluster's own scheduler is the one."""
    every: bool = True
    """For all jobs, as upstream's flag; or only for those with a schedulingPolicy."""
    joins: bool = True
    """Whether pods still join the group; without, they go by its scheduler one by one."""


class Site(Struct, frozen=True, kw_only=True):
    services: ServiceMode = "shared"
    domain: str = ""
    """The cluster domain that addresses end with; empty: `….svc`, which every cluster resolves."""
    dialect: Dialect | None = None
    ports: dict[Task, int] = {}
    """On a laptop each task listens on a port of its own; empty on a cluster."""
    accelerators: dict[str, Accelerator] = {}
    server_script: str = ""
    """The parameter server of the platform's own (`grpcServerFilePath`); empty: ours."""
    server_image: str = ""
    """Of a parameter server that comes with the platform, unless the job has an image of its own."""
    server_command: tuple[str, ...] = ()
    """What such a server runs instead of the script; empty: the script."""
    tensorboard_image: str = DEFAULT_IMAGE
    gang: Gang | None = None
    queues_pods: bool = False
    """Kueue is told of each pod of a queued job, for clusters where it does not see to TFJobs themselves."""
    queued: int = 0
    """How many pods of this job it was told to wait for."""
    lost: int = 0
    """How many tasks of this job are finished and have no pod any more: nobody may wait for those."""

    def cluster(self) -> Cluster:
        """What a job must remember of the place where it began."""
        return Cluster(
            services=self.services,
            domain=self.domain,
            dialect=self.dialect or "tf2",
            gang=self.gang.by if self.gang else None,
            queued=self.queued,
        )


def addresses(job: Job, role: Role, site: Site) -> list[str]:
    """Where each task of a role is reached, by index."""
    if site.ports:
        return [f"127.0.0.1:{site.ports[task]}" for task in role.tasks()]
    domain = f".{site.domain}" if site.domain else ""
    host = f"{job.name}.{job.namespace}" if site.services == "shared" else job.namespace
    start, end = pod_prefix(job.name, role.name), f".{host}.svc{domain}:{role.port}"
    return [f"{start}{index}{end}" for index in range(role.replicas)]


def settle(job: Job, observed: Observed, site: Site) -> Site:
    """The place as this job knows it: as decided at its first pass, else as it is here and now."""
    kept = observed.status.cluster
    site = _grouped(job, observed, site)
    if kept is not None:
        return replace(site, services=kept.services, domain=kept.domain, dialect=kept.dialect)
    mode, dialect = job.services or site.services, site.dialect or job.dialect
    if job.services is None and mode != "per-replica" and _has_replica_services(job, observed):
        return replace(site, services="per-replica", dialect="kubeflow" if dialect == "tf2" else dialect)
    return replace(site, services=mode, dialect=dialect)


def _has_replica_services(job: Job, observed: Observed) -> bool:
    """Another operator began this job with a Service per replica: its running pods know only those names,
    and call each other as upstream does."""
    services = {name for kind, name in observed.children if kind == "Service"}
    return bool(services) and any(pod_name(job.name, task) in services for task in job.tasks())


def _grouped(job: Job, observed: Observed, site: Site) -> Site:
    """How this job's pods are held together. Chosen when there are none yet, and kept as long as there are some:
    of half a gang nobody ever has enough members."""
    kept, is_resumed = observed.status.cluster, observed.status.has(SUSPENDED)
    is_told = site.gang is not None or site.queues_pods or (kept is not None and kept.queued > 0)
    lost = _lost(job, observed) if is_told else 0
    if kept is not None and not is_resumed:
        is_same = site.gang is not None and site.gang.by == kept.gang
        return replace(site, gang=site.gang if is_same else None, queued=kept.queued, lost=lost)
    if observed.pods and not is_resumed and (POD_GROUP, job.name) not in observed.children:
        return replace(site, gang=None)  # another operator began it; a group would mean that we did
    is_queued = site.queues_pods and QUEUE_NAME in job.labels
    gang, queued = _asked(job, site.gang), job.size - lost if is_queued else 0
    return replace(site, gang=gang, queued=queued, lost=lost)


def _asked(job: Job, gang: Gang | None) -> Gang | None:
    """A gang of one is none; but with another's scheduler come its queues, and upstream's users know it so."""
    if gang is None or (gang.by == "core" and job.size == 1):
        return None
    return gang if gang.every or job.run_policy.scheduling is not None else None


def _lost(job: Job, observed: Observed) -> int:
    memory = observed.status.tasks
    done = {
        Task(role.name, index)
        for role in job.roles
        if role.name in memory
        for index in expand(memory[role.name].finished, role.replicas)
    }
    return len(done - {pod.task for pod in observed.pods if pod.deleting is None}) if done else 0
