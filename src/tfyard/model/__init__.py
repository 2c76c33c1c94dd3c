"""What we believe: the words every other room speaks. Frozen, typed, and imports nothing of ours.

Kubernetes words stay outside (`tfReplicaSpecs`), TensorFlow words are used inside (`Role`, `Task`).
Pod templates stay plain data, so that a field Kubernetes adds next year passes through untouched.
"""

from .decision import Action, Create, Decision, Delete, DeleteJob, Event
from .job import (
    CHIEF,
    EVALUATOR,
    MASTER,
    PS,
    ROLES,
    TENSORFLOW_CONTAINER,
    WORKER,
    CleanPolicy,
    Code,
    Dialect,
    Job,
    Manifest,
    RestartPolicy,
    Role,
    RunPolicy,
    SchedulingPolicy,
    ServiceMode,
    SuccessPolicy,
    Task,
    TensorBoard,
    tensorflow_container,
)
from .problem import Place, Problem, format_path
from .status import Cluster, Condition, Failure, RoleMemory, RoleStatus, Status
from .world import Observed, Obstacle, Phase, Pod

__all__ = [
    "CHIEF",
    "EVALUATOR",
    "MASTER",
    "PS",
    "ROLES",
    "TENSORFLOW_CONTAINER",
    "WORKER",
    "Action",
    "CleanPolicy",
    "Cluster",
    "Code",
    "Condition",
    "Create",
    "Decision",
    "Delete",
    "DeleteJob",
    "Dialect",
    "Event",
    "Failure",
    "Job",
    "Manifest",
    "Observed",
    "Obstacle",
    "Phase",
    "Place",
    "Pod",
    "Problem",
    "RestartPolicy",
    "Role",
    "RoleMemory",
    "RoleStatus",
    "RunPolicy",
    "SchedulingPolicy",
    "ServiceMode",
    "Status",
    "SuccessPolicy",
    "Task",
    "TensorBoard",
    "format_path",
    "tensorflow_container",
]
