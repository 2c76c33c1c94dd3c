"""A job as its user describes it, independent of the file format."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

Manifest = dict[str, Any]
"""A Kubernetes object as plain data. Values share it, so it is never changed in place."""

CHIEF, MASTER, WORKER, PS, EVALUATOR = ROLES = ("Chief", "Master", "Worker", "PS", "Evaluator")

API_VERSION = "kubeflow.org/v1"
"""API version of the TFJobs that tfyard writes."""
DEFAULT_PORT = 2222
"""Port of a task's TensorFlow server."""
TENSORFLOW_CONTAINER = "tensorflow"
"""The container that trains: this name tells it apart from sidecars."""

RestartPolicy = Literal["Always", "OnFailure", "Never", "ExitCode"]
CleanPolicy = Literal["All", "Running", "None"]
SuccessPolicy = Literal["", "AllWorkers"]
ServiceMode = Literal["shared", "per-replica", "none"]
Dialect = Literal["tf2", "kubeflow", "tf1"]
StallReaction = Literal["report", "restart"]
GangScheduler = Literal["core", "volcano", "scheduler-plugins"]


class Task(NamedTuple):
    """One member of a role. A tuple, because planning a large job hashes it a million times."""

    role: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which is never called on a task

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
    """The job has no template for this role: tfyard's own parameter server runs."""

    def tasks(self) -> Iterator[Task]:
        return (Task(self.name, index) for index in range(self.replicas))

    @property
    def overruled_restart(self) -> str:
        """The pod template's restart policy, if it differs from the role's: it then has no effect."""
        policy = str((self.template.get("spec") or {}).get("restartPolicy") or "")
        return policy if policy != self.restart else ""


class SchedulingPolicy(Struct, frozen=True, kw_only=True):
    min_available: int | None = None
    queue: str = ""
    min_resources: dict[str, str] | None = None
    priority_class: str = ""
    timeout: int | None = None


class Stall(Struct, frozen=True, kw_only=True):
    """How long the tasks that decide may write no line, and what happens then."""

    after: int
    then: StallReaction = "report"


class RunPolicy(Struct, frozen=True, kw_only=True):
    """How the job runs and ends. All durations are in seconds."""

    clean: CleanPolicy = "None"
    ttl: int | None = None
    deadline: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    managed_by: str | None = None
    scheduling: SchedulingPolicy | None = None
    evaluator_grace: int = 0
    """How long evaluators may run after the job has succeeded, to evaluate the last checkpoint."""
    keeps_pods: bool = False
    """Suspending the job ends its pods in place, because deleting them would delete their logs."""
    stall: Stall | None = None
    """None: the job may print nothing for as long as it likes."""


class TensorBoard(Struct, frozen=True, kw_only=True):
    log_dir: str
    image: str = ""
    service_type: str = "ClusterIP"
    volumes: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()


class MLflow(Struct, frozen=True, kw_only=True):
    """The MLflow server that a process of the user reports the job to."""

    uri: str = ""
    """Address of the server, without credentials; empty: tasks cannot reach it."""
    run: str = ""
    """Id of the run at the server; empty: it is not made yet."""


class Code(Struct, frozen=True, kw_only=True):
    """Where the program comes from when it is not in the image."""

    kind: Literal["folder", "git", "http"]
    source: str
    at: str = "/code"
    ref: str = ""
    claim: str = ""
    """The claim to which `tfyard submit` copies a large folder; empty: a new claim for this job."""
    requirements: str = ""
    """Path in the code of the requirements file to install; empty: none."""


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
    """The task that decides about success, where the format names one (terminationPolicy of v1alpha1)."""
    fails_with: Literal["any", "chief"] = "any"
    """The tasks whose permanent failure fails the job; under v1alpha1, only the chief."""
    dynamic_workers: bool = False
    together: bool = False
    """Whenever one task must start again, all unfinished tasks do."""
    dialect: Dialect = "tf2"
    services: ServiceMode | None = None
    """How tasks are addressed; None: as the cluster or machine where the job runs is set up."""
    tensorboard: TensorBoard | None = None
    code: Code | None = None
    tf1: bool = False
    """The program is written for TensorFlow 1 and runs with TensorFlow 2."""
    mlflow: MLflow | None = None
    objects: tuple[Manifest, ...] = ()
    """Objects that the job needs, such as claims; they are created with it, never by the planner."""
    problems: tuple[str, ...] = ()
    """Why the spec is invalid; the other fields hold as much of it as is valid."""

    @property
    def as_owner(self) -> str:
        """The job as its objects refer to it."""
        return owner_key(self.api_version, self.kind, self.namespace, self.name, self.uid)

    @property
    def has_harmless_failures(self) -> bool:
        """Whether the job has tasks whose failure does not fail it."""
        return self.fails_with == "chief" and any(role.name not in (CHIEF, MASTER) for role in self.roles)

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def tasks(self) -> Iterator[Task]:
        return (task for role in self.roles for task in role.tasks())

    @property
    def size(self) -> int:
        return sum(role.replicas for role in self.roles)


def owner_key(api_version: str, kind: str, namespace: str, name: str, uid: str) -> str:
    """A job as the owner of objects. An owner reference is believed as a whole, and only in the job's namespace:
    anyone may write the uid of another tenant's job into one."""
    return f"{namespace}/{kind}.{api_version.partition('/')[0]}/{name}/{uid}"


def training_position(containers: Sequence[Manifest]) -> int:
    """Position of the container that trains: the one named `tensorflow`, or else the first."""
    return next((i for i, each in enumerate(containers) if each.get("name") == TENSORFLOW_CONTAINER), 0)


def tensorflow_container(template: Manifest) -> Manifest:
    """The container that trains."""
    containers: list[Manifest] = (template.get("spec") or {}).get("containers") or [{}]
    return containers[training_position(containers)]


def preparations(template: Manifest) -> list[str]:
    """The init containers that must end before the program starts, without the sidecars among them."""
    inits: list[Manifest] = (template.get("spec") or {}).get("initContainers") or []
    return [str(each["name"]) for each in inits if each.get("restartPolicy") != "Always"]
