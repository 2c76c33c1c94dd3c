"""The parts of Kubernetes objects that explain why a job does not run. Decoded straight from answers: what is not
named here never becomes an object."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from tfyard.model import TENSORFLOW_CONTAINER, Manifest
from tfyard.model.names import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Owner(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Meta(Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Object(Struct, frozen=True):
    metadata: Meta = Meta()

    @property
    def name(self) -> str:
        return self.metadata.name


class Condition(Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Waiting(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class Running(Struct, frozen=True, rename="camel"):
    started_at: datetime | None = None


class Terminated(Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class State(Struct, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    restart_count: int = 0
    state: State = State()
    last_state: State = State()


class Resources(Struct, frozen=True):
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class Container(Struct, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: Resources = Resources()
    volume_mounts: tuple[Manifest, ...] = ()


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """As in Kubernetes: an empty key with Exists is for every taint, an empty effect for every effect."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


class PodSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Manifest = {}
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Manifest, ...] = ()
    scheduler_name: str = ""
    scheduling_gates: tuple[Manifest, ...] = ()
    resource_claims: tuple[Manifest, ...] = ()
    image_pull_secrets: tuple[Manifest, ...] = ()
    security_context: Manifest = {}


class PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"
    pod_ip: str = field(default="", name="podIP")
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def task(self) -> str:
        """Its name, such as worker-0; empty for a pod that is no task."""
        labels = self.metadata.labels
        role, index = labels.get(REPLICA_TYPE, ""), labels.get(REPLICA_INDEX, "")
        return f"{role}-{index}" if role and index else ""

    @property
    def job(self) -> str:
        return self.metadata.labels.get(JOB_NAME, "")

    def condition(self, type: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == type), None)

    @property
    def taken_away(self) -> Condition | None:
        """By which the cluster says that it takes the pod away, who does, and why."""
        found = self.condition("DisruptionTarget")
        return found if found and found.status == "True" else None

    @property
    def ended_by(self) -> tuple[str, str]:
        """Reason and words of whoever ends the whole pod, such as a drain. They say more than how its program
        took it."""
        taken = self.taken_away or Condition()
        return self.status.reason or taken.reason, self.status.message or taken.message

    @property
    def trainer(self) -> Container:
        """The container that trains: by name, or the first."""
        found = self.spec.containers or (Container(),)
        return next((each for each in found if each.name == TENSORFLOW_CONTAINER), found[0])

    @property
    def program(self) -> ContainerStatus:
        """How the container that trains is."""
        found = self.status.container_statuses or (ContainerStatus(),)
        return next((each for each in found if each.name == TENSORFLOW_CONTAINER), found[0])

    @property
    def statuses(self) -> tuple[ContainerStatus, ...]:
        return (*self.status.init_container_statuses, *self.status.container_statuses)

    @property
    def is_over(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def changed(self) -> datetime | None:
        """When its state last changed: an older event tells of something that is over."""
        scheduled = self.condition("PodScheduled")
        times = [scheduled.last_transition_time if scheduled else None]
        for each in self.statuses:
            running, ended = each.state.running, each.state.terminated or each.last_state.terminated
            times += [running.started_at if running else None, ended.finished_at if ended else None]
        return max((time for time in times if time), default=None)

    @property
    def requests(self) -> dict[str, Any]:
        """What its training container asks for. Kubernetes takes limits for requests where those are missing."""
        resources = self.trainer.resources
        return {**resources.limits, **resources.requests}

    @property
    def claims(self) -> list[str]:
        found = (volume.get("persistentVolumeClaim") or {} for volume in self.spec.volumes)
        return [str(claim["claimName"]) for claim in found if claim.get("claimName")]


class Reference(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: datetime | None = None


class Source(Struct, frozen=True):
    component: str = ""


class Event(Object, frozen=True, rename="camel"):
    involved_object: Reference = Reference()
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: Series | None = None
    source: Source = Source()

    @property
    def at(self) -> datetime | None:
        """When it happened last: three writers of events, three places for their time."""
        last = self.series.last_observed_time if self.series else None
        return last or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def order(self) -> tuple[datetime, int]:
        """To sort by. Kubelets tell whole seconds and schedulers finer times; within a second, events are told
        apart by the order in which they were stored."""
        return (self.at or LONG_AGO).replace(microsecond=0), int(self.metadata.resource_version or 0)


class NodeSpec(Struct, frozen=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Struct, frozen=True):
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ClaimSpec(Struct, frozen=True, rename="camel"):
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_name: str = ""
    resources: Resources = Resources()


class ClaimStatus(Struct, frozen=True):
    phase: str = "Pending"


class Claim(Object, frozen=True):
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class StorageClass(Object, frozen=True, rename="camel"):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"

    @property
    def is_default(self) -> bool:
        return self.metadata.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


class QuotaSpec(Struct, frozen=True, rename="camel"):
    scopes: tuple[str, ...] = ()
    scope_selector: Manifest | None = None


class QuotaStatus(Struct, frozen=True):
    hard: dict[str, Any] = {}
    used: dict[str, Any] = {}


class Quota(Object, frozen=True):
    """A ResourceQuota."""

    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()

    @property
    def is_for_all(self) -> bool:
        """Whether it counts every pod, not only those of a class or with a deadline."""
        return not self.spec.scopes and not self.spec.scope_selector


class LeaseSpec(Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class Lease(Object, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class Endpoint(Struct, frozen=True, rename="camel"):
    target_ref: Reference | None = None
    hostname: str | None = None


class Slice(Object, frozen=True):
    """An EndpointSlice: which pods a Service has."""

    endpoints: tuple[Endpoint, ...] | None = None


class PolicySpec(Struct, frozen=True, rename="camel"):
    pod_selector: Manifest = {}
    policy_types: tuple[str, ...] = ()
    ingress: tuple[Manifest, ...] = ()
    egress: tuple[Manifest, ...] = ()


class Policy(Object, frozen=True):
    """A NetworkPolicy."""

    spec: PolicySpec = PolicySpec()


class QueueStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class QueuedWorkload(Object, frozen=True):
    """A Workload of Kueue: its place in the queue."""

    status: QueueStatus = QueueStatus()


class Column(Struct, frozen=True):
    name: str = ""


class DefinitionVersion(Struct, frozen=True, rename="camel"):
    name: str = ""
    served: bool = True
    additional_printer_columns: tuple[Column, ...] = ()


class DefinitionSpec(Struct, frozen=True):
    versions: tuple[DefinitionVersion, ...] = ()


class Definition(Object, frozen=True):
    """A CustomResourceDefinition of TFJobs."""

    spec: DefinitionSpec = DefinitionSpec()

    @property
    def is_tfyards(self) -> bool:
        """Others drop the parts of a status in which the operator remembers what it did."""
        return any(
            column.name == "Workers"
            for version in self.spec.versions
            for column in version.additional_printer_columns
        )
