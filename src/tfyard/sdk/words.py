"""The keyword arguments of `Job`: the words of the job file, and `args` and `module`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

Role = int | Mapping[str, Any]
"""Number of tasks, or a mapping as in the job file."""
Restart = Literal["never", "on-failure", "always", "exit-code"]


class Words(TypedDict, total=False):
    """The words of the job file are explained in docs/jobfile.md."""

    args: Sequence[str]
    """Arguments of a script or module; for a file, the command of tasks that have none."""
    module: str
    """Python module to run instead of a file: `python -m`."""

    version: int
    name: str
    namespace: str
    code: str | Mapping[str, Any]
    tf1: bool
    requirements: str
    chief: Role
    master: Role
    worker: Role
    ps: Role
    evaluator: Role
    deadline: str | int
    retries: int
    stall: str | int | Mapping[str, Any]
    keepFor: str | int
    clean: Literal["all", "running", "none"]
    success: Literal["chief", "all-workers"]
    suspend: bool
    dynamic: bool
    together: bool
    queue: str
    gang: bool | Mapping[str, Any]
    tensorboard: str | Mapping[str, Any]
    mlflow: str
    dialect: Literal["tf2", "kubeflow", "tf1"]
    services: Literal["shared", "per-replica", "none"]

    image: str
    run: str | Sequence[str]
    workdir: str
    env: Mapping[str, str | int | float | bool | None]
    secrets: Mapping[str, str]
    cpu: str | int | float
    memory: str | int | float
    gpu: int | Mapping[str, int]
    restart: Restart
    stopGrace: str | int
    port: int
    volumes: Mapping[str, Mapping[str, Any]]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    pullSecret: str | Sequence[str]
    serviceAccount: str
    nodeSelector: Mapping[str, str]
    node: str
    tolerations: Sequence[Mapping[str, Any]]
    spread: Literal["prefer", "require"]
    overlay: Mapping[str, Any]


OF_CELLS = (
    *("chief", "worker", "ps", "evaluator", "name", "image"),
    *("cpu", "memory", "gpu", "restart", "retries", "deadline"),
)
"""Words that `%%tfyard` accepts: those with a simple value."""
OF_FILES = ("args", "chief", "env", "evaluator", "master", "name", "ps", "tf1", "worker")
"""Words that can change a job of a file; the others are changed in the file."""
