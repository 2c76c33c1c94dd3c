"""Events, nodes, claims and the other objects around a pod that explain why a job does not run."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from tfyard.model import Manifest
from tfyard.model.status import Time

from .metadata import Object, version_number
from .pods import ResourceRequirements, Taint, TimedCondition

SERVICE_NAME = "kubernetes.io/service-name"
"""Label of an EndpointSlice: the name of its Service."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(Struct, frozen=True, rename="camel"):
    count: int = 0
    last_observed_time: Time | None = None


class EventSource(Struct, frozen=True):
    component: str = ""


class EventView(Object, frozen=True, rename="camel"):
    involved_object: ObjectReference = ObjectReference()
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    last_timestamp: Time | None = None
    event_time: Time | None = None
    series: Series | None = None
    source: EventSource = EventSource()

    @property
    def at(self) -> datetime | None:
        """When it happened last; components write this into different fields."""
        last = self.series.last_observed_time if self.series else None
        return last or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def order(self) -> tuple[datetime, int]:
        """Sort key. Kubelets write whole seconds and schedulers finer times; within a second, events are in the
        order in which they were stored."""
        return (self.at or LONG_AGO).replace(microsecond=0), version_number(self.metadata.resource_version)


class NodeSpec(Struct, frozen=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Struct, frozen=True):
    allocatable: dict[str, str] = {}
    conditions: tuple[TimedCondition, ...] = ()


class NodeView(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        return any((each.type, each.status) == ("Ready", "True") for each in self.status.conditions)


class ClaimSpec(Struct, frozen=True, rename="camel"):
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    selector: Manifest | None = None
    resources: ResourceRequirements = ResourceRequirements()


class ClaimStatus(Struct, frozen=True):
    phase: str = "Pending"


class Claim(Object, frozen=True):
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class StorageClass(Object, frozen=True, rename="camel"):
    provisioner: str = ""

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
        """Whether it counts every pod, not only those of a scope such as a priority class."""
        return not self.spec.scopes and not self.spec.scope_selector


class LeaseSpec(Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: Time | None = None


class Lease(Object, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class EndpointConditions(Struct, frozen=True):
    ready: bool | None = None


class Endpoint(Struct, frozen=True, rename="camel"):
    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    target_ref: ObjectReference | None = None
    hostname: str | None = None


class EndpointPort(Struct, frozen=True):
    port: int | None = None
    name: str | None = None
    protocol: str | None = None


class Slice(Object, frozen=True, rename="camel"):
    """An EndpointSlice: the pods of a Service; large Services have several."""

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None

    @property
    def service(self) -> str:
        """The name of its Service."""
        return self.metadata.labels.get(SERVICE_NAME, "")

    @property
    def ready(self) -> list[Endpoint]:
        """Its ready endpoints: unknown means ready, and `publishNotReadyAddresses` makes all ready."""
        return [each for each in self.endpoints or () if each.conditions.ready is not False]


class PolicySpec(Struct, frozen=True, rename="camel"):
    pod_selector: Manifest = {}


class NetworkPolicy(Object, frozen=True):
    """A NetworkPolicy."""

    spec: PolicySpec = PolicySpec()


class QueueStatus(Struct, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()


class QueuedWorkload(Object, frozen=True):
    """A Workload of Kueue: why it waits."""

    status: QueueStatus = QueueStatus()


class PendingWorkload(Object, frozen=True, rename="camel"):
    """A Workload that waits, as Kueue's visibility API tells it: both positions begin at 0."""

    position_in_local_queue: int = 0
    position_in_cluster_queue: int = 0
