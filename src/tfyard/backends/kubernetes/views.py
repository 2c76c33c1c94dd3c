"""The few fields of each object that decisions depend on: watch streams are decoded straight into these.

A pod has hundreds of fields and there may be ten thousand pods; what is not named here never becomes an object.
"""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tfyard.kube.decoding import cut
from tfyard.model import ROLES, TENSORFLOW_CONTAINER, Group, Phase, Pod, Task
from tfyard.model.names import (
    ATTEMPT,
    PLUGINS_GROUP,
    QUEUE_RETRIES,
    REPLICA_INDEX,
    REPLICA_TYPE,
    VOLCANO_GROUP,
)

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


class Waiting(Struct, frozen=True, gc=False):
    reason: str = ""


class State(Struct, frozen=True, gc=False):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: State = State()
    last_state: State = State()


class PodCondition(Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class SchedulingGroup(Struct, frozen=True, rename="camel", gc=False):
    pod_group_name: str = ""


class PodSpec(Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""
    scheduling_group: SchedulingGroup | None = None


class PodView(Struct, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


DISRUPTIONS = frozenset(
    (
        "Evicted",
        "Preempting",
        "Preempted",
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Terminated",
        "NodeAffinity",
    )
)
"""Pod reasons by which a kubelet says that the program did not fail. Newer clusters also set DisruptionTarget."""


CRASH_LOOP = "CrashLoopBackOff"
ROLE_LABELS = {role.lower(): role for role in ROLES}


def to_pod(view: PodView) -> Pod | None:
    """The model's pod; None for one whose labels are not those of a task."""
    labels = view.metadata.labels
    role, index = ROLE_LABELS.get(labels.get(REPLICA_TYPE, "")), labels.get(REPLICA_INDEX, "")
    if role is None or not index.isdigit():
        return None
    status = view.status
    main = _main_status(status)
    ended = (main.state.terminated or main.last_state.terminated) if main else None
    return Pod(
        name=view.metadata.name,
        uid=view.metadata.uid,
        task=Task(role, int(index)),
        attempt=_attempt(view.metadata.annotations),
        phase=_phase(status.phase),
        ready=any(c.type == "Ready" and c.status == "True" for c in status.conditions),
        exit_code=ended.exit_code if ended else None,
        message=(ended.message if ended else "") or status.message,
        reason=status.reason or (ended.reason if ended else ""),
        restarts=sum(c.restart_count for c in (*status.container_statuses, *status.init_container_statuses)),
        restart_due=_is_restart_due(status),
        disrupted=_is_disrupted(status),
        member=_is_member(view),
        waits=_is_member(view) and not view.spec.node_name,
        final=view.metadata.annotations.get(QUEUE_RETRIES) == "false",
        started=status.start_time,
        deleting=view.metadata.deletion_timestamp,
    )


def _is_member(view: PodView) -> bool:
    meta = view.metadata
    is_marked = PLUGINS_GROUP in meta.labels or VOLCANO_GROUP in meta.annotations
    return is_marked or view.spec.scheduling_group is not None


def _main_status(status: PodStatus) -> ContainerStatus | None:
    """The container that trains; if an init container failed, the reason is there."""
    failed = (
        c for c in status.init_container_statuses if c.state.terminated and c.state.terminated.exit_code
    )
    named = (c for c in status.container_statuses if c.name == TENSORFLOW_CONTAINER)
    return next(failed, None) or next(named, None) or next(iter(status.container_statuses), None)


def _is_restart_due(status: PodStatus) -> bool:
    """The kubelet restarts the program, or what must run before it, and waits longer before each restart."""
    trainer = next((c for c in status.container_statuses if c.name == TENSORFLOW_CONTAINER), None)
    found = (*status.init_container_statuses, *((trainer,) if trainer else status.container_statuses[:1]))
    return any(each.state.waiting and each.state.waiting.reason == CRASH_LOOP for each in found)


def _attempt(annotations: dict[str, str]) -> int:
    """0 without the annotation: another operator created the pod."""
    text = annotations.get(ATTEMPT, "0")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _phase(text: str) -> Phase:
    known: dict[str, Phase] = {"Running": "Running", "Succeeded": "Succeeded", "Failed": "Failed"}
    return known.get(text, "Unknown" if text == "Unknown" else "Pending")


def _is_disrupted(status: PodStatus) -> bool:
    targeted = any(c.type == "DisruptionTarget" and c.status == "True" for c in status.conditions)
    return targeted or (status.phase == "Failed" and status.reason in DISRUPTIONS)
