"""The few fields of each object that decisions depend on: watch streams are decoded straight into these.

A pod has hundreds of fields and there may be ten thousand pods; what is not named here never becomes an object.
"""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.kube.decoding import cut
from tfyard.model import Group

RUN_POLICY_DEPTH = 4
"""Levels of `spec.runPolicy.schedulingPolicy.minResources`, its deepest field."""


class Owner(Struct, frozen=True, gc=False):
    uid: str = ""
    controller: bool = False


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    generation: int = 0

    @property
    def owner(self) -> str:
        """The uid of the controller; empty: pods without one, or of others, are not ours."""
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


class Child(Struct, frozen=True):
    """A Service, or anything else of which only the existence matters."""

    metadata: Meta

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def version(self) -> str:
        return self.metadata.resource_version

    @property
    def relevant(self) -> tuple[object, ...]:
        """The fields that decisions depend on."""
        return (self.metadata.uid,)


class GroupStatus(Struct, frozen=True, gc=False):
    phase: str = ""


class GroupView(Child, frozen=True):
    """A PodGroup, core's or another's: what it asks for, and Volcano's answer."""

    spec: dict[str, Any] = {}
    status: GroupStatus = GroupStatus()

    @property
    def relevant(self) -> tuple[object, ...]:
        """Without the counts that schedulers keep in it."""
        return self.metadata.uid, self.metadata.deletion_timestamp, self.spec, self.status.phase


def to_group(view: Child) -> Group | None:
    if not isinstance(view, GroupView):
        return None
    meta = view.metadata
    return Group(
        spec=view.spec,
        phase=view.status.phase,
        deleting=meta.deletion_timestamp is not None,
    )


class JobView(Struct, frozen=True, rename="camel", kw_only=True):
    """A TFJob as it is stored; spec and status stay bytes until this very job is reconciled."""

    metadata: Meta
    spec: Raw = Raw(b"{}")
    status: Raw = Raw(b"{}")
    api_version: str = ""
    kind: str = ""

    def copy(self) -> "JobView":
        """With bytes of its own: a decoded Raw keeps the whole answer alive, which may be a page of 500 jobs."""
        return replace(self, spec=self.spec.copy(), status=self.status.copy())

    def is_same_job(self, other: "JobView") -> bool:
        """Whether both ask for the same, whatever their status."""
        mine, its = self.metadata, other.metadata
        same = (mine.uid, mine.generation, mine.labels, mine.annotations)
        return same == (its.uid, its.generation, its.labels, its.annotations) and self.spec == other.spec

    def status_document(self) -> dict[str, Any]:
        """The document with nothing but its status: all that is read of a job that was read before."""
        return {"status": msgspec.json.decode(self.status)}

    def document(self) -> dict[str, Any]:
        """The object as plain data, with the fields that a job is read from. RecursionError if it is nested
        deeper than Python can follow."""
        return self._document(self.spec)

    def shallow_document(self) -> dict[str, Any]:
        """The document without what is nested deeper than any field of a run policy."""
        return self._document(cut(bytes(self.spec), RUN_POLICY_DEPTH))

    def _document(self, spec: Raw | bytes) -> dict[str, Any]:
        meta = self.metadata
        fields = ("name", "namespace", "uid", "labels", "annotations", "generation")
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {name: getattr(meta, name) for name in fields},
            "spec": msgspec.json.decode(spec),
            "status": msgspec.json.decode(self.status),
        }


class Terminated(Struct, frozen=True, rename="camel", gc=False):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class Running(Struct, frozen=True, rename="camel", gc=False):
    started_at: datetime | None = None


class Waiting(Struct, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class State(Struct, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: State = State()
    last_state: State = State()

    @property
    def has_started(self) -> bool:
        is_known = self.state.running or self.state.terminated or self.last_state.terminated
        return is_known is not None or self.restart_count > 0


class PodCondition(Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    observed_generation: int = 0
    """The generation of the pod that the kubelet knew when it reported this (since Kubernetes 1.35)."""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class SchedulingGroup(Struct, frozen=True, rename="camel", gc=False):
    pod_group_name: str = ""


class Container(Struct, frozen=True, rename="camel"):
    name: str = ""
    restart_policy: str = ""
    restart_policy_rules: Any = None


class PodSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    scheduling_group: SchedulingGroup | None = None


class PodView(Struct, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Struct, frozen=True, gc=False):
    key: str = ""


class NodeSpec(Struct, frozen=True):
    taints: tuple[Taint, ...] = ()


class NodeStatus(Struct, frozen=True):
    conditions: tuple[PodCondition, ...] = ()


class NodeView(Struct, frozen=True):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
