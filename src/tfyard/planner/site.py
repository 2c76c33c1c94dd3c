"""Settings of the operator or the machine, which hold for every job. `job_setup` has those of one job."""

from msgspec import Struct

from tfyard.model import Dialect, GangScheduler, ServiceMode, Task
from tfyard.model.backoff import Backoff
from tfyard.model.names import TENSORBOARD_IMAGE


class DriverMount(Struct, frozen=True, rename="camel"):
    name: str
    host_path: str
    mount_path: str


class DriverEnv(Struct, frozen=True):
    name: str
    value: str


class Accelerator(Struct, frozen=True, rename="camel"):
    """Mounts and variables for a container that requests this device, on clusters without a device plugin."""

    volumes: tuple[DriverMount, ...] = ()
    env_vars: tuple[DriverEnv, ...] = ()


class Gang(Struct, frozen=True, kw_only=True):
    """The gang scheduler: it starts all pods of a job or none."""

    by: GangScheduler
    scheduler: str = ""
    """The pods' schedulerName; empty: the cluster's default scheduler does it."""
    every: bool = True
    """Whether all jobs are gang-scheduled, as with upstream's flag, or only those with a schedulingPolicy."""


class Site(Struct, frozen=True, kw_only=True):
    services: ServiceMode = "shared"
    domain: str = ""
    """The cluster domain at the end of addresses; empty: `….svc`, which every cluster resolves."""
    dialect: Dialect | None = None
    """The dialect of all jobs; None: each job chooses."""
    ports: dict[Task, int] = {}
    """The port of each task on a single machine; empty on a cluster."""
    accelerators: dict[str, Accelerator] = {}
    server_script: str = ""
    """The platform's own parameter server (`grpcServerFilePath`); empty: tfyard's."""
    server_image: str = ""
    """The image of tfyard's parameter server, unless the job sets one."""
    server_command: tuple[str, ...] = ()
    """Command of that server instead of the script; empty: the script."""
    tensorboard_image: str = TENSORBOARD_IMAGE
    kubeflow: bool = False
    """Whether jobs end, are cleaned up and take over Services exactly as under training-operator. `services` and
    `dialect` decide about its Services and TF_CONFIG."""
    gang: Gang | None = None
    backoff: Backoff = Backoff(first=10.0, longest=600.0)
    """Back-off of a task that fails repeatedly, with the numbers of Kubernetes' own Job."""
    eviction_lag: float = 30.0
    """Seconds until a node has surely told of a pod that it takes away itself (node pressure, a shutdown): it does
    so when the pod's containers have ended, by default within 30 s. 0: nodes tell at once."""
    log_interval: float = 15.0
    """Least seconds between two looks at the log of a job that may stall; 0: a look costs nothing."""
    queues_pods: bool = False
    """Whether Kueue queues the pods of a job, for clusters where it does not manage TFJobs themselves."""
