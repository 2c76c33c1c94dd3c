"""The record of a job, wherever it ran: which code, which parameters, on what, and how it went.

What only the client knows, `Origin`, is written when the job starts: here into the run's directory, for a cluster
into the ConfigMap `<job>-record`. The rest is read from the job itself.

python -m tfyard.overview.job_record > schemas/record.json
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tfyard.model import Job, Role, tensorflow_container
from tfyard.model.quantity import amount
from tfyard.overview.attempts import Attempt, gpus
from tfyard.overview.best_values import BestValue

VERSION = 1
UNKNOWN = "unknown"
LARGEST = 512 << 10
"""Bytes of a record of the client, with its diff: all of it is kept in one ConfigMap."""
LARGEST_DIFF = 384 << 10
TENSORFLOW = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tf-nightly",
    "intel-tensorflow",
    "tensorflow-macos",
)
"""Packages that are TensorFlow."""


class CodeState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The code of a job as git knows it."""

    commit: str = ""
    """Empty: unknown, or the tree has no commit yet."""
    branch: str = ""
    """Empty: the head is detached."""
    remote: str = ""
    """Address from which the code comes, without credentials."""
    root: str = ""
    """The tree's folder on this machine."""
    folder: str = ""
    """Path of the job's folder in the tree."""
    is_dirty: bool | None = None
    changed: tuple[str, ...] = ()
    """The changed files of a dirty tree, as `git status --short` writes them."""
    missing: tuple[str, ...] = ()
    """Changes that are not in the recorded diff, and why."""
    problem: str = ""
    """Why nothing, or not more, is known."""


class Software(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the tasks ran with."""

    python: str = ""
    packages: dict[str, str] = {}
    problem: str = ""
    """Why it is not known."""


class MachineRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine of a run."""

    name: str = ""
    system: str = ""
    cpus: int = 0
    memory: int = 0
    """Bytes."""
    gpus: tuple[str, ...] = ()


class Origin(Struct, frozen=True, kw_only=True):
    """What the client knew when it started or submitted the job."""

    version: int = VERSION
    tfyard: str = ""
    submitter: str = ""
    """The user, as the client says."""
    at: datetime | None = None
    command: tuple[str, ...] = ()
    parameters: dict[str, str] = {}
    code: CodeState = CodeState()
    software: Software | None = None
    """None: the client does not know what the tasks run with."""
    machine: MachineRecord | None = None
    """None: the job runs on a cluster."""


class RoleRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one role asked for."""

    name: str
    tasks: int
    image: str = ""
    digest: str = ""
    """The image as the kubelet reported it; empty: unknown."""
    cpu: str = ""
    memory: str = ""
    gpus: float = 0.0


class JobRecord(Struct, frozen=True, kw_only=True):
    """All that is known of a job, after its end or during it."""

    name: str
    job: str
    place: Literal["machine", "cluster"]
    namespace: str = ""
    state: str = ""
    exit_code: int | None = None
    message: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    origin: Origin = Origin()
    tensorflow: str = ""
    """TensorFlow's version: as the log says, or else of the package."""
    devices: tuple[str, ...] = ()
    """Devices that TensorFlow wrote to the log."""
    roles: tuple[RoleRecord, ...] = ()
    nodes: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    metrics: tuple[BestValue, ...] = ()
    cpu_hours: float | None = None
    cpu_is: Literal["used", "reserved"] = "used"
    """Hours of CPU that processes used, or that pods had reserved."""
    gpu_hours: float | None = None
    diff: str = ""
    """What was not committed of the code, as `git apply` adds it to the commit."""
    problems: tuple[str, ...] = ()
    """What is not known, and why."""

    @property
    def seconds(self) -> float | None:
        """How long the job took; None: it has not ended."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None


def roles(job: Job, digests: dict[str, str]) -> tuple[RoleRecord, ...]:
    """`digests`: role -> its image as the kubelet reported it."""
    return tuple(_role(role, digests.get(role.name, "")) for role in job.roles if role.replicas)


def _role(role: Role, digest: str) -> RoleRecord:
    container = tensorflow_container(role.template)
    asked = _asked(role)
    return RoleRecord(
        name=role.name,
        tasks=role.replicas,
        image=str(container.get("image") or ""),
        digest=digest,
        cpu=str(asked.get("cpu") or ""),
        memory=str(asked.get("memory") or ""),
        gpus=gpus(role),
    )


def _asked(role: Role) -> dict[str, Any]:
    resources = tensorflow_container(role.template).get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def reserved_cpu_hours(job: Job, attempts: Iterable[Attempt], now: datetime) -> float | None:
    """Hours of CPU that the pods of these attempts had reserved; None if they reserve none."""
    cpus = {role.name.lower(): float(amount(_asked(role).get("cpu")) or 0) for role in job.roles}
    if not any(cpus.values()):
        return None
    ran = [each for each in attempts if each.started and not each.container]
    hours = 0.0
    for each in ran:
        seconds = ((each.finished or now) - (each.started or now)).total_seconds()
        hours += max(0.0, seconds) / 3600 * cpus.get(each.task.rpartition("-")[0], 0.0)
    return hours


def tensorflow_of(software: Software | None) -> str:
    packages = software.packages if software else {}
    return next((packages[name] for name in TENSORFLOW if name in packages), "")


def schema() -> dict[str, Any]:
    """The JSON schema of `tfyard describe --record -o json`."""
    made = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(JobRecord)))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "record of a job, version 1"}
    return {**head, "$ref": made["$ref"], "$defs": dict(sorted(made["$defs"].items()))}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
