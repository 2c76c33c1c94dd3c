"""What a job asks for and a process of this machine does not get: named once each instead of being
silently ignored."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from tfyard.backends.local import run_directory
from tfyard.model import Job, Manifest, tensorflow_container
from tfyard.model.quantity import amount
from tfyard.node.interpreter import Interpreter
from tfyard.node.volumes import LASTING, is_known, lasting_name
from tfyard.planner.pods import program_text

_RELATIVE_PATH = re.compile(r"(?<![\w./-])[\w.-][\w./-]{0,199}(?![\w./-])")
_OF_PODS = {
    "nodeSelector": "node selection",
    "affinity": "affinity",
    "tolerations": "tolerations",
    "topologySpreadConstraints": "topology spread",
    "imagePullSecrets": "image pull secrets",
    "serviceAccountName": "the service account",
    "priorityClassName": "the priority class",
    "schedulerName": "the scheduler",
    "runtimeClassName": "the runtime class",
    "hostname": "the host name",
    "hostAliases": "host aliases",
    "dnsConfig": "DNS settings",
    "securityContext": "the security context",
}
_OF_CONTAINERS = {
    "securityContext": "the security context",
    "volumeDevices": "block devices",
}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
LONGEST_LOOK = 60
"""Seconds for the look at the packages."""
_MISSING_PACKAGES = """
import sys
from importlib.metadata import PackageNotFoundError, version
try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement

def is_met(wanted):
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return False
    return wanted.specifier.contains(found, prereleases=True)

for line in open(sys.argv[1], encoding="utf-8"):
    line = line.partition(" #")[0].strip()
    if not line or line[0] in "#-" or "://" in line:
        continue
    try:
        wanted = Requirement(line)
    except ValueError:
        continue
    if (wanted.marker is None or wanted.marker.evaluate()) and not is_met(wanted):
        print(line)
"""
"""Program for the interpreter of the tasks, which has their packages. Options and addresses are left to pip."""


def ignored(job: Job) -> Iterator[str]:
    """Settings for a queue or another controller, which are ignored: the job starts at once."""
    if job.run_policy.suspend:
        yield "suspend (the job starts at once)"
    if job.run_policy.managed_by:
        yield f"managedBy {job.run_policy.managed_by}"


def excess(job: Job, memory: int) -> Iterator[str]:
    """Warning if all tasks together may use more memory than this machine has."""
    asked = sum(memory_limit(role.template) * role.replicas for role in job.roles)
    if asked > memory:
        yield f"the tasks may use {_gib(asked)} of memory, and this machine has {_gib(memory)}"


def unreachable_files(job: Job, folder: Path) -> Iterator[str]:
    """Warnings about files beside the job file that tasks name and do not have. `folder`: that of the job file."""
    containers = [tensorflow_container(role.template) for role in job.roles if role.replicas]
    texts = [program_text(container) for container in containers if not container.get("workingDir")]
    for word in sorted({word for text in texts for word in _RELATIVE_PATH.findall(text)}):
        if job.code is None and (folder / word).is_file():
            fix = "add `code: .` to the job file (`tfyard convert --to jobfile` makes one from a TFJob)"
            yield f"tasks do not have {word}: the job has no `code`; {fix}"


def missing_packages(python: Interpreter, file: Path) -> Iterator[str]:
    """Packages of `requirements` that the tasks' environment lacks, and the command that installs them."""
    command = [python.path, "-c", _MISSING_PACKAGES, str(file)]
    fix = f"{quote(python.path)} -m pip install -r {quote(str(file))}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_LOOK, check=True)
    except (OSError, subprocess.SubprocessError):
        yield f"requirements: it was not possible to look for the packages; to install them: {fix}"
        return
    if missing := done.stdout.splitlines():
        yield f"requirements: the environment does not have {', '.join(missing)}; {fix}"


def shortfalls(job: Job) -> list[str]:
    """Names of what is not supported here, each once."""
    unsupported = [name for role in job.roles for name in _in_template(role.template)]
    return list(dict.fromkeys(unsupported))


def stand_ins(job: Job, mounted: set[str]) -> list[tuple[str, str]]:
    """(volume, directory) of volumes with the cluster's storage, which are directories here."""
    volumes = [v for role in job.roles for v in (role.template.get("spec") or {}).get("volumes") or []]
    directories = {v["name"]: lasting_name(kind, v[kind]) for v in volumes for kind in LASTING if kind in v}
    return [(name, directory) for name, directory in directories.items() if name not in mounted]


def outputs(job: Job, mounted: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """(volume, directory) of the volumes that are kept after the run."""
    yield from mounted.items()
    for name, directory in stand_ins(job, set(mounted)):
        yield name, run_directory.HOME / "volumes" / directory


def memory_limit(template: Manifest) -> float:
    """Bytes that the containers of a pod may use."""
    return sum(
        float(amount((container.get("resources") or {}).get("limits", {}).get("memory")) or 0)
        for container in (template.get("spec") or {}).get("containers") or []
    )


def _gib(count: float) -> str:
    return f"{count / (1 << 30):,.1f} GiB"


def _in_template(template: Manifest) -> Iterator[str]:
    spec = template.get("spec") or {}
    yield from (text for field, text in _OF_PODS.items() if spec.get(field))
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield from (text for field, text in _OF_CONTAINERS.items() if container.get(field))
        limits = (container.get("resources") or {}).get("limits") or {}
        if limits.get("cpu"):
            yield "CPU limits"
        if any("grpc" in (container.get(probe) or {}) for probe in _PROBES):
            yield "gRPC probes"
    for volume in spec.get("volumes") or []:
        yield from _in_volume(volume)


def _in_volume(volume: Manifest) -> Iterator[str]:
    sources = (volume.get("projected") or {}).get("sources") or ()
    if not is_known(volume):
        yield f"the volume {volume.get('name')}"
    if (volume.get("emptyDir") or {}).get("medium") == "Memory":
        yield "volumes in memory (they are on the disk)"
    if any(source.get("serviceAccountToken") for source in sources):
        yield "tokens of service accounts"
