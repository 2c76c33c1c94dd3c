"""Situations of a job as values, in the words of Kubernetes 1.36: the pure tests of `why` read them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tfyard.model import Condition, Role, Status
from tfyard.overview.evidence import End, Evidence
from tfyard.overview.why import Answer, explain
from tfyard.views import objects, pods

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
Manifest = dict[str, Any]


def ago(**time: float) -> datetime:
    return NOW - timedelta(**time)


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    task: str = "worker-0", status: Manifest | None = None, age: float = 5, **spec: Any
) -> pods.PodDetails:
    """`age`: minutes since it was created."""
    role, _, index = task.rpartition("-")
    labels = {
        "training.kubeflow.org/job-name": "train",
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": index,
    }
    container = {"name": "tensorflow", "image": "example/train:1", **spec.pop("container", {})}
    made = {
        "metadata": {"name": f"train-{task}", "labels": labels, "creationTimestamp": stamp(ago(minutes=age))},
        "spec": {"containers": [container], **spec},
        "status": status or {"phase": "Pending"},
    }
    return msgspec.convert(made, pods.PodDetails)


def unschedulable(message: str) -> Manifest:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {
        "phase": "Pending",
        "conditions": [{**condition, "lastTransitionTime": stamp(ago(minutes=5))}],
    }


def container(state: Manifest, phase: str = "Pending", **fields: Any) -> Manifest:
    """The status of a pod on a node whose training container is in this state."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(ago(minutes=5))}
    status = {"name": "tensorflow", "image": "example/train:1", "state": state, **fields}
    return {"phase": phase, "conditions": [scheduled], "containerStatuses": [status]}


def waiting(reason: str, message: str = "") -> Manifest:
    return container({"waiting": {"reason": reason, "message": message}})


def creating() -> Manifest:
    return waiting("ContainerCreating")


def running() -> Manifest:
    return container({"running": {"startedAt": stamp(ago(minutes=4))}}, "Running")


def ended(code: int, message: str = "", reason: str = "Error") -> Manifest:
    state = {"exitCode": code, "reason": reason, "message": message, "finishedAt": stamp(ago(minutes=1))}
    return container({"terminated": state}, "Failed")


def crashing(code: int, message: str = "", reason: str = "Error") -> Manifest:
    last = {"exitCode": code, "reason": reason, "message": message, "finishedAt": stamp(ago(minutes=1))}
    back_off = {
        "reason": "CrashLoopBackOff",
        "message": "back-off 5m0s restarting failed container=tensorflow",
    }
    return container({"waiting": back_off}, "Running", restartCount=3, lastState={"terminated": last})


def ended_in_place(state: Manifest, *others: Manifest, **fields: Any) -> Manifest:
    """The status of a pod that the operator ended by a deadline of 1 s, after the end of its program."""
    over = container(state, "Failed", **fields)
    deadline = "Pod was active on the node longer than the specified deadline"
    statuses = [*over["containerStatuses"], *others]
    return {**over, "reason": "DeadlineExceeded", "message": deadline, "containerStatuses": statuses}


NEVER_BEGUN = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "startedAt": None,
        "finishedAt": None,
    }
}
"""State of a container that was ended while it waited for its next restart."""


def warning(
    reason: str, message: str, of: str = "train-worker-0", kind: str = "Pod", age: float = 1, uid: str = ""
) -> objects.EventView:
    made = {
        "involvedObject": {"kind": kind, "name": of, "uid": uid},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": stamp(ago(minutes=age)),
    }
    return msgspec.convert(made, objects.EventView)


def node(name: str = "n1", taints: list[Manifest] | None = None, **fields: Any) -> objects.NodeView:
    made = {
        "metadata": {"name": name, "labels": fields.get("labels", {})},
        "spec": {"taints": taints or []},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", **fields.get("allocatable", {})}},
    }
    return msgspec.convert(made, objects.NodeView)


def condition(type: str, reason: str = "", message: str = "") -> Condition:
    return Condition(type, "True", reason, message, last_transition_time=ago(minutes=3))


def status(*conditions: Condition, **fields: Any) -> Status:
    return Status(conditions=(condition("Created"), *conditions), start_time=ago(minutes=5), **fields)


def job(*pods: pods.PodDetails, **fields: Any) -> Evidence:
    """A TFJob of two workers, five minutes old, all of which may be read."""
    defaults: Manifest = {
        "namespace": "ml",
        "created": ago(minutes=5),
        "uid": "u1",
        "roles": (Role(name="Worker", replicas=2),),
        "status": status(),
        "pods": pods,
        "events": (),
    }
    return Evidence(name="train", **{**defaults, **fields})


def local(text: str, exit_code: int = 1, **fields: Any) -> Evidence:
    """A run on this machine whose worker-0 failed with these last words."""
    end = End(task="worker-0", exit_code=exit_code, text=text, at=ago(minutes=1), source="log", **fields)
    return Evidence(name="train-1", is_local=True, status=status(condition("Failed")), ends=(end,))


def why(evidence: Evidence) -> Answer:
    return explain(evidence, NOW)
