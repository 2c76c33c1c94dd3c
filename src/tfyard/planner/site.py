"""Where a job happens. All that differs between a laptop and a cluster is in here."""

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Cluster, Dialect, Job, Observed, Role, ServiceMode, Task
from tfyard.model.names import DEFAULT_IMAGE, pod_name, pod_prefix


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

    def cluster(self) -> Cluster:
        """What a job must remember of the place where it began."""
        return Cluster(services=self.services, domain=self.domain, dialect=self.dialect or "tf2")


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
