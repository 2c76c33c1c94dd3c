"""A pod as Kubernetes describes it: the fields that decisions depend on (`PodView`), those that a kubelet also
needs (`PodOnNode`), and more of them for explanations (`PodDetails`).

Watch streams are decoded straight into these. A pod has hundreds of fields and there may be ten thousand pods:
other fields never become objects. `gc=False`: objects that are decoded from JSON cannot form a cycle.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from tfyard.model import DEFAULT_GRACE, END_AT_ONCE, TENSORFLOW_CONTAINER, Manifest
from tfyard.model.container_reasons import STATUS_UNKNOWN
from tfyard.model.names import ATTEMPT, JOB_NAME, REPLICA_INDEX, REPLICA_TYPE, STOPPED
from tfyard.model.status import Time

from .metadata import Object


class PodCondition(Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class TimedCondition(PodCondition, frozen=True, rename="camel"):
    last_transition_time: Time | None = None


class ContainerStateWaiting(Struct, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Struct, frozen=True, rename="camel", gc=False):
    started_at: Time | None = None


class ContainerStateTerminated(Struct, frozen=True, rename="camel", gc=False):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None

    @property
    def has_failed(self) -> bool:
        return self.exit_code != 0

    def __post_init__(self) -> None:
        """Drops the start of a container that could not be started: containerd reports 1970 for it."""
        if self.started_at is not None and self.started_at.year == 1970:
            force_setattr(self, "started_at", None)


class State(Struct, frozen=True, gc=False):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the kubelet lost the container and its exit code."""
        return self.terminated is not None and self.terminated.reason == STATUS_UNKNOWN


class ContainerStatus(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    restart_count: int = 0
    state: State = State()
    last_state: State = State()

    @property
    def has_started(self) -> bool:
        is_known = self.state.running or self.state.terminated or self.last_state.terminated
        return is_known is not None or self.restart_count > 0


class Container(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    restart_policy: str = ""
    restart_policy_rules: Any = None

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container runs beside the others until they have ended."""
        return self.restart_policy == "Always"


class SchedulingGroup(Struct, frozen=True, rename="camel", gc=False):
    pod_group_name: str = ""


class PodSpec(Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    scheduling_group: SchedulingGroup | None = None


class PodStatus(Struct, frozen=True, rename="camel", gc=False):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    start_time: Time | None = None
    conditions: tuple[PodCondition, ...] = ()
    observed_generation: int = 0
    """The generation of the pod that the kubelet knew when it reported this (since Kubernetes 1.35)."""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class PodView(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def task(self) -> str:
        """The name of its task, such as worker-0; empty for a pod that is no task."""
        labels = self.metadata.labels
        role, index = labels.get(REPLICA_TYPE, ""), labels.get(REPLICA_INDEX, "")
        return f"{role}-{index}" if role and index else ""

    @property
    def job(self) -> str:
        return self.metadata.labels.get(JOB_NAME, "")

    @property
    def attempt(self) -> int:
        """How many pods of its task came before it; 0 without the annotation: another operator created the pod."""
        text = self.metadata.annotations.get(ATTEMPT, "0")
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    def is_of(self, job: str) -> bool:
        """Whether it is a task of the job with this uid, not of another one that has or had the same name."""
        return bool(self.task) and any(owner.uid == job for owner in self.metadata.owner_references)

    def condition(self, type: str) -> PodCondition | None:
        return next((c for c in self.status.conditions if c.type == type), None)

    @property
    def unscheduled(self) -> PodCondition | None:
        """The scheduler's reason and message for a pod without a node; None: it has one, or is too new."""
        if self.spec.node_name:  # a scheduler that tried twice reports that it could not assign the pod again
            return None
        return _with_status(self.status.conditions, "PodScheduled", "False")

    @property
    def statuses(self) -> tuple[ContainerStatus, ...]:
        return (*self.status.init_container_statuses, *self.status.container_statuses)

    @property
    def taken_away(self) -> PodCondition | None:
        """The condition of a pod that the cluster takes away, such as by eviction or preemption."""
        return _with_status(self.status.conditions, "DisruptionTarget", "True")

    @property
    def trainer(self) -> Container:
        """The container that trains: by name, or the first."""
        return _trainer(self.spec.containers) or Container(TENSORFLOW_CONTAINER)

    @property
    def program(self) -> ContainerStatus:
        """Status of the training container; kubelets sort statuses by name. If it was ended in its back-off,
        kubelets report the end of a run that never began."""
        name = self.trainer.name
        own = next(
            (each for each in self.status.container_statuses if each.name == name), ContainerStatus(name)
        )
        if self.is_ended_in_place and own.last_state.terminated and own.state.is_lost:
            return replace(own, state=own.last_state, last_state=State())
        return own

    @property
    def is_up(self) -> bool:
        """Whether its program runs; the phase does not tell, because it is Running in a crash loop, too."""
        return self.status.phase == "Running" and self.program.state.running is not None

    @property
    def preparations(self) -> list[ContainerStatus]:
        """The init containers, without the sidecars among them, which run beside the program."""
        sidecars = {each.name for each in self.spec.init_containers if each.is_sidecar}
        return [each for each in self.status.init_container_statuses if each.name not in sidecars]

    @property
    def is_over(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_told_to_end(self) -> bool:
        """Whether the operator told the node to end the pod without deleting it, after the end of its program."""
        return self.spec.active_deadline_seconds == END_AT_ONCE

    @property
    def is_stopped(self) -> bool:
        """Whether that was before the end of its program, because the job was suspended."""
        return STOPPED in self.metadata.annotations

    @property
    def is_ended_in_place(self) -> bool:
        """Whether the node has done so: phase, reason and message then tell nothing about the program."""
        return self.is_over and self.is_told_to_end


_C = TypeVar("_C", bound=Container)
_K = TypeVar("_K", bound=PodCondition)


def _trainer(containers: Sequence[_C]) -> _C | None:
    named = (each for each in containers if each.name == TENSORFLOW_CONTAINER)
    return next(named, containers[0] if containers else None)


def _with_status(conditions: Sequence[_K], type: str, status: str) -> _K | None:
    return next((each for each in conditions if (each.type, each.status) == (type, status)), None)


# --- for a kubelet


class ContainerOnNode(Container, frozen=True):
    image: str = ""


class PodSpecOnNode(PodSpec, frozen=True):
    containers: tuple[ContainerOnNode, ...] = ()
    init_containers: tuple[ContainerOnNode, ...] = ()
    ephemeral_containers: tuple[ContainerOnNode, ...] = ()
    """Containers of `kubectl debug`, which are added to a pod that runs."""
    termination_grace_period_seconds: int = DEFAULT_GRACE
    scheduling_gates: tuple[Manifest, ...] = ()


class PodStatusOnNode(PodStatus, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class PodOnNode(PodView, frozen=True):
    spec: PodSpecOnNode = PodSpecOnNode()
    status: PodStatusOnNode = PodStatusOnNode()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.name}"


# --- for explanations


class ResourceRequirements(Struct, frozen=True):
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class ContainerDetails(ContainerOnNode, frozen=True):
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
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
        """Whether it tolerates a taint: an empty key with Exists matches all keys, an empty effect all effects."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


class PodSpecDetails(PodSpecOnNode, frozen=True):
    containers: tuple[ContainerDetails, ...] = ()
    init_containers: tuple[ContainerDetails, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Manifest = {}
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Manifest, ...] = ()
    scheduler_name: str = ""
    resource_claims: tuple[Manifest, ...] = ()
    image_pull_secrets: tuple[Manifest, ...] = ()


class ContainerStatusDetails(ContainerStatus, frozen=True):
    image: str = ""
    image_id: str = field(default="", name="imageID")
    """The image with its digest, as the kubelet reports it."""


class PodStatusDetails(PodStatusOnNode, frozen=True):
    container_statuses: tuple[ContainerStatusDetails, ...] = ()
    init_container_statuses: tuple[ContainerStatusDetails, ...] = ()
    pod_ip: str = field(default="", name="podIP")


class PodDetails(PodOnNode, frozen=True):
    spec: PodSpecDetails = PodSpecDetails()
    status: PodStatusDetails = PodStatusDetails()

    def condition(self, type: str) -> TimedCondition | None:
        return next((c for c in self.status.conditions if c.type == type), None)

    @property
    def taken_away(self) -> TimedCondition | None:
        return _with_status(self.status.conditions, "DisruptionTarget", "True")

    @property
    def trainer(self) -> ContainerDetails:
        return _trainer(self.spec.containers) or ContainerDetails(TENSORFLOW_CONTAINER)

    @property
    def statuses(self) -> tuple[ContainerStatusDetails, ...]:
        return (*self.status.init_container_statuses, *self.status.container_statuses)

    @property
    def changed(self) -> datetime | None:
        """When its state last changed: older events are out of date."""
        scheduled = self.condition("PodScheduled")
        times = [scheduled.last_transition_time if scheduled else None]
        for each in self.statuses:
            running, ended = each.state.running, each.state.terminated or each.last_state.terminated
            times += [running.started_at if running else None, ended.finished_at if ended else None]
        return max((time for time in times if time), default=None)

    @property
    def requests(self) -> dict[str, Any]:
        """Requests of the training container. Kubernetes takes limits for requests where those are missing."""
        resources = self.trainer.resources
        return {**resources.limits, **resources.requests}

    @property
    def claims(self) -> list[str]:
        sources = (volume.get("persistentVolumeClaim") or {} for volume in self.spec.volumes)
        return [str(claim["claimName"]) for claim in sources if claim.get("claimName")]
