"""A job as its user means it, whatever file format said so."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from msgspec import Struct

Manifest = dict[str, Any]
"""Plain Kubernetes data. Shared between values, so never changed in place."""

CHIEF, MASTER, WORKER, PS, EVALUATOR = ROLES = ("Chief", "Master", "Worker", "PS", "Evaluator")

API_VERSION = "kubeflow.org/v1"
"""Of TFJobs that tfyard writes."""
DEFAULT_PORT = 2222
"""Of the TensorFlow server of a task."""
TENSORFLOW_CONTAINER = "tensorflow"
"""The container that trains: this name tells it apart from sidecars."""

RestartPolicy = Literal["Always", "OnFailure", "Never", "ExitCode"]
CleanPolicy = Literal["All", "Running", "None"]
SuccessPolicy = Literal["", "AllWorkers"]
ServiceMode = Literal["shared", "per-replica", "none"]
Dialect = Literal["tf2", "kubeflow", "tf1"]
GangScheduler = Literal["core", "volcano", "scheduler-plugins"]


class Task(NamedTuple):
    """One member of a role. A tuple, because planning a large job hashes it a million times."""

    role: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a task

    @property
    def name(self) -> str:
        return f"{self.role.lower()}-{self.index}"


class Role(Struct, frozen=True, kw_only=True):
    name: str
    replicas: int = 1
    restart: RestartPolicy = "Never"
    template: Manifest = {}
    port: int = DEFAULT_PORT
    is_default_server: bool = False
    """The user gave no template: this is the parameter server that tfyard provides."""

    def tasks(self) -> Iterator[Task]:
        return (Task(self.name, index) for index in range(self.replicas))

    @property
    def overruled_restart(self) -> str:
        """The pod template's own restart policy, if it differs from the role's: it has no effect."""
        inside = str((self.template.get("spec") or {}).get("restartPolicy") or "")
        return inside if inside != self.restart else ""


class SchedulingPolicy(Struct, frozen=True, kw_only=True):
    min_available: int | None = None
    queue: str = ""
    min_resources: dict[str, str] | None = None
    priority_class: str = ""
    timeout: int | None = None


class RunPolicy(Struct, frozen=True, kw_only=True):
    """Durations are seconds."""

    clean: CleanPolicy = "None"
    ttl: int | None = None
    deadline: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    managed_by: str | None = None
    scheduling: SchedulingPolicy | None = None
    evaluator_grace: int = 0
    """How long evaluators may run after the job has succeeded, to evaluate the last checkpoint."""


class TensorBoard(Struct, frozen=True, kw_only=True):
    log_dir: str
    image: str = ""
    service_type: str = "ClusterIP"
    volumes: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()


class Code(Struct, frozen=True, kw_only=True):
    """Where the program comes from when it is not in the image."""

    kind: Literal["folder", "git", "http"]
    source: str
    at: str = "/code"
    ref: str = ""
    claim: str = ""
    """Where `tfyard submit` puts a large folder; empty: a claim of its own."""
    requirements: str = ""
    """The file of the code that lists the packages to install; empty: none."""


class Job(Struct, frozen=True, kw_only=True):
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    api_version: str = API_VERSION
    kind: str = "TFJob"
    roles: tuple[Role, ...] = ()
    run_policy: RunPolicy = RunPolicy()
    success: SuccessPolicy = ""
    chief: Task | None = None
    """Set where the format itself names the task that decides (terminationPolicy of v1alpha1)."""
    fails_with: Literal["any", "chief"] = "any"
    """Whose permanent failure fails the job: v1alpha1 looked at its chief only."""
    dynamic_workers: bool = False
    dialect: Dialect = "tf2"
    services: ServiceMode | None = None
    """None: the site where the job runs decides."""
    tensorboard: TensorBoard | None = None
    code: Code | None = None
    tf1: bool = False
    """The program is written for TensorFlow 1 and runs with TensorFlow 2."""
    objects: tuple[Manifest, ...] = ()
    """What must exist beside the job (claims, for example); created with it, never by the planner."""
    problems: tuple[str, ...] = ()
    """Why its spec cannot be read, if it cannot: the other fields are what can be read of it."""

    @property
    def has_harmless_failures(self) -> bool:
        """Whether it has tasks whose failure does not fail it."""
        return self.fails_with == "chief" and any(role.name not in (CHIEF, MASTER) for role in self.roles)

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def tasks(self) -> Iterator[Task]:
        return (task for role in self.roles for task in role.tasks())

    @property
    def size(self) -> int:
        return sum(role.replicas for role in self.roles)


def tensorflow_container(template: Manifest) -> Manifest:
    """The container that trains: by name, or the first if none has that name."""
    containers: list[Manifest] = (template.get("spec") or {}).get("containers") or [{}]
    return next((c for c in containers if c.get("name") == TENSORFLOW_CONTAINER), containers[0])
