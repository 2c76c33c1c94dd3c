"""The record of a job, wherever it ran: which code, which parameters, on what, and how it went.

What only the client knows, `Origin`, is written when the job starts: here into the run's directory, for a cluster
into the ConfigMap `<job>-record`. The rest is read from the job itself.

python -m tfyard.overview.job_record > schemas/record.json
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tfyard.model import Job, Role, tensorflow_container
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.origin import Origin, Software
from tfyard.model.quantity import amount
from tfyard.overview.attempts import Attempt, gpus
from tfyard.overview.best_values import BestValue

UNKNOWN = "unknown"
LARGEST = 512 << 10
"""Bytes of a record of the client, with its diff: all of it is kept in one ConfigMap."""
TENSORFLOW = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tf-nightly",
    "intel-tensorflow",
    "tensorflow-macos",
)
"""Packages that are TensorFlow."""
TOLD_PACKAGES = "packages: "
_COMMIT = re.compile(r"^commit: ([0-9a-f]{40,64})$", re.MULTILINE)


class RoleRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The resources and the image that one role asked for."""

    name: str
    tasks: int
    image: str = ""
    digest: str = ""
    """The image as the kubelet reported it; it is empty if that is unknown."""
    cpu: str = ""
    memory: str = ""
    gpus: float = 0.0


class JobRecord(Struct, frozen=True, kw_only=True):
    """Everything that is known of a job, during it or after its end."""

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
        """The time that the job took; it is None if the job has not ended."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None


def roles(job: Job, digests: dict[str, str]) -> tuple[RoleRecord, ...]:
    """`digests`: role -> its image as the kubelet reported it."""
    return tuple(_role(role, digests.get(role.name, "")) for role in job.roles if role.replicas)


def _role(role: Role, digest: str) -> RoleRecord:
    container = tensorflow_container(role.template)
    resources = _asked(role)
    return RoleRecord(
        name=role.name,
        tasks=role.replicas,
        image=str(container.get("image") or ""),
        digest=digest,
        cpu=str(resources.get("cpu") or ""),
        memory=str(resources.get("memory") or ""),
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


def told_software(text: str) -> Software | None:
    """What `packages.py` of render/scripts has written among these lines; None: nothing."""
    for line in reversed(text.splitlines()):
        if line.startswith(TOLD_PACKAGES):
            try:
                return msgspec.json.decode(line.removeprefix(TOLD_PACKAGES), type=Software)
            except CORRUPT_JSON as error:
                return Software(problem=f"what was told of them is corrupt ({error})")
    return None


def told_commit(text: str) -> str:
    """The commit that the script has written that clones the code; empty: nothing."""
    commits = _COMMIT.findall(text)
    return commits[-1] if commits else ""


def schema() -> dict[str, Any]:
    """The JSON schema of `tfyard describe --record -o json`."""
    document = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(JobRecord)))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "record of a job, version 1"}
    return {**head, "$ref": document["$ref"], "$defs": dict(sorted(document["$defs"].items()))}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
