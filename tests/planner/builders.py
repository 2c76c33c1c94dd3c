"""Builders of small jobs, pods and observations for the planner's tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tfyard.model import (
    ROLES,
    Create,
    Decision,
    Delete,
    Job,
    Manifest,
    Observed,
    Pod,
    Role,
    RunPolicy,
    Status,
    Task,
)
from tfyard.planner import Site, decide

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
IMAGE = "tensorflow/tensorflow:2.21.0"
POLICY_FIELDS = frozenset(RunPolicy.__struct_fields__)
HERE = Site()
NOTHING = Status()


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def template(**container: Any) -> Manifest:
    return {"spec": {"containers": [{"name": "tensorflow", "image": IMAGE, **container}]}}


def role(name: str, replicas: int = 1, restart: Any = "Never", **container: Any) -> Role:
    return Role(name=name, replicas=replicas, restart=restart, template=template(**container))


def chief(restart: Any = "Never", replicas: int = 1) -> Role:
    return role("Chief", replicas, restart)


def master(restart: Any = "Never") -> Role:
    return role("Master", 1, restart)


def workers(replicas: int, restart: Any = "Never") -> Role:
    return role("Worker", replicas, restart)


def servers(replicas: int, restart: Any = "Never") -> Role:
    return role("PS", replicas, restart)


def evaluator(restart: Any = "Never") -> Role:
    return role("Evaluator", 1, restart)


def job(*roles: Role, **fields: Any) -> Job:
    """A job called mnist; run-policy fields may stand beside the job's own."""
    policy = {name: fields.pop(name) for name in POLICY_FIELDS & fields.keys()}
    known = {"name": "mnist", "namespace": "lab", "uid": "u-1", "generation": 1, **fields}
    return Job(roles=roles, run_policy=RunPolicy(**policy), **known)


def task(name: str) -> Task:
    kind, _, index = name.rpartition("-")
    return Task(next(role for role in ROLES if role.lower() == kind), int(index))


def pod(name: str, phase: Any = "Running", **fields: Any) -> Pod:
    """`pod("worker-0", "Failed", exit_code=1)`."""
    known: dict[str, Any] = {
        "name": f"mnist-{name}",
        "uid": f"{name}#{fields.get('attempt', 0)}",
        "task": task(name),
    }
    return Pod(phase=phase, **(known | fields))


def pods(*names: str, phase: Any = "Running") -> list[Pod]:
    return [pod(name, phase) for name in names]


def look(
    job: Job, *pods: Pod, status: Status = NOTHING, now: datetime = NOW, site: Site = HERE, **seen: Any
) -> Decision:
    return decide(job, Observed(status=status, pods=pods, **seen), site, now)


def begun(job: Job, *pods: Pod, site: Site = HERE) -> Status:
    """The status of a job whose first pass is done, and which runs if some of `pods` do."""
    first = look(job, site=site).status
    return look(job, *pods, status=first, site=site).status if pods else first


def created(decision: Decision, kind: str = "Pod") -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, Create) and action.kind == kind]


def deleted(decision: Decision, kind: str = "Pod") -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, Delete) and action.kind == kind]


def manifests(decision: Decision, kind: str = "Pod") -> dict[str, Manifest]:
    return {a.name: a.manifest for a in decision.actions if isinstance(a, Create) and a.kind == kind}


def trainer(decision: Decision, name: str) -> Manifest:
    """The `tensorflow` container of a pod that the decision creates."""
    containers: list[Manifest] = manifests(decision)[f"mnist-{name}"]["spec"]["containers"]
    return next(container for container in containers if container["name"] == "tensorflow")


def env(decision: Decision, name: str) -> dict[str, Any]:
    entries = trainer(decision, name).get("env", [])
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in entries}


def attempt(decision: Decision, name: str) -> str:
    return str(manifests(decision)[f"mnist-{name}"]["metadata"]["annotations"]["tfyard.dev/attempt"])


def shown(status: Status) -> list[str]:
    """The conditions as a line each: `Running=False (TFJobSuspended)` is what a client sees first."""
    return [f"{c.type}={c.status} ({c.reason})" for c in status.conditions]


def told(decision: Decision) -> list[tuple[str, str, str]]:
    return [(event.type, event.reason, event.message) for event in decision.events]
