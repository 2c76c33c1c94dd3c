"""What the machine or the operator offers to every job: its settings. What holds for one job is in job_setup."""

from msgspec import Struct

from tfyard.model import Dialect, GangScheduler, ServiceMode, Task
from tfyard.model.names import DEFAULT_IMAGE


class DriverMount(Struct, frozen=True, rename="camel"):
    name: str
    host_path: str
    mount_path: str


class DriverEnv(Struct, frozen=True):
    name: str
    value: str


class Accelerator(Struct, frozen=True, rename="camel"):
    """What a container that requests this device also needs, on clusters without a device plugin."""

    volumes: tuple[DriverMount, ...] = ()
    env_vars: tuple[DriverEnv, ...] = ()


class Gang(Struct, frozen=True, kw_only=True):
    """The gang scheduler: it starts all pods of a job or none."""

    by: GangScheduler
    scheduler: str = ""
    """The pods' schedulerName; empty: the cluster's default scheduler does it."""
    every: bool = True
    """For all jobs, as upstream's flag; or only for those with a schedulingPolicy."""


class Site(Struct, frozen=True, kw_only=True):
    services: ServiceMode = "shared"
    domain: str = ""
    """The cluster domain at the end of addresses; empty: `….svc`, which every cluster resolves."""
    dialect: Dialect | None = None
    """For all jobs; None: each job chooses."""
    ports: dict[Task, int] = {}
    """On a single machine each task listens on its own port; empty on a cluster."""
    accelerators: dict[str, Accelerator] = {}
    server_script: str = ""
    """The platform's own parameter server (`grpcServerFilePath`); empty: tfyard's."""
    server_image: str = ""
    """The image of tfyard's parameter server, unless the job sets one."""
    server_command: tuple[str, ...] = ()
    """What that server runs instead of the script; empty: the script."""
    tensorboard_image: str = DEFAULT_IMAGE
    gang: Gang | None = None
    queues_pods: bool = False
    """Kueue queues the pods of a job, for clusters where it does not manage TFJobs themselves."""
