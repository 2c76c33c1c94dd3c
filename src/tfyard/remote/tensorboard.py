"""TensorBoard for jobs of a cluster: the one beside a job, or one in a short-lived pod that reads their claims."""

import posixpath
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.kube import Client, Kind, list_all, requests
from tfyard.model import Job, Manifest, tensorflow_container
from tfyard.overview import mounts
from tfyard.overview.objects import Pod
from tfyard.planner.tensorboard import command

from .helper_pods import Helper, Mount
from .job_paths import claims, job_of
from .jobs import Found
from .pod_follow import Choice
from .tasks import is_running

DEADLINE = 8 * 3600
"""Seconds, for a client that is killed; one that lives deletes its pod."""
MEMORY = "2Gi"
BESIDE = {"app.kubernetes.io/name": "tensorboard"}

_PODS = Kind(Pod)


class NoSummaries(TfyardError):
    """It is not known where they are, or they cannot be read from another pod."""


class Summaries(Struct, frozen=True, kw_only=True):
    """Of one job: a folder in a helper pod, and what must be mounted for it."""

    found: Found
    name: str
    folder: str
    mounts: tuple[Mount, ...]
    template: Manifest
    image: str
    node: str = ""
    """Where a claim is in use that only one node can have."""


async def beside(client: Client, found: Found) -> Choice | None:
    """The one that the operator or a rendered manifest keeps for the job, if it runs."""
    labels = {**BESIDE, "app.kubernetes.io/instance": found.name}
    path = requests.PODS.path(found.namespace)
    pods = (await list_all(client, _PODS, path, requests.selecting(labels=labels))).items
    if not any(map(is_running, pods)):
        return None
    return Choice(f"TensorBoard of {found.name}", found.namespace, labels, is_running)


def summaries(found: Found, log_dir: str = "") -> Summaries:
    """`log_dir`: as a task sees it; default: what the job says, else all that its tasks write to a claim."""
    job = job_of(found)
    board = job.tensorboard
    asked = log_dir or (board.log_dir if board else "") or _written(job)
    if not asked:
        more = "say where they are: `tensorboard: /out/logs` in the job file, or --logdir"
        raise NoSummaries(
            f"{found.name} does not say where its summaries are, and does not write to a claim; {more}"
        )
    asked = mounts.normal(asked, job)
    template = mounts.role_of(job, "", asked).template
    needed = claims(template, asked, read_only=True)
    if not needed:
        kept = mounts.kept(job)
        raise NoSummaries(f"{asked} of {found.name} is not on a claim, so no other pod can read it{kept}")
    image = (board.image if board else "") or str(tensorflow_container(template).get("image") or "")
    return Summaries(
        found=found, name=found.name, folder=asked, mounts=needed, template=template, image=image
    )


def shared(parts: Sequence[Summaries]) -> list[list[Summaries]]:
    """Which can share a pod: of one namespace, with claims that are not in use on different nodes. Those that can
    be anywhere come last, and join the first group."""
    groups: dict[tuple[str, str], list[Summaries]] = {}
    for part in sorted(parts, key=lambda part: not part.node):
        namespace = part.found.namespace
        known = [key for key in groups if key[0] == namespace and part.node in ("", key[1])]
        groups.setdefault(known[0] if known else (namespace, part.node), []).append(part)
    return list(groups.values())


def helper(parts: Sequence[Summaries], image: str = "", user: int | None = None) -> Helper:
    """Of one job, its folder is where its tasks have it; of several, below the job's name."""
    first, is_one = parts[0], len(parts) == 1
    moved = parts if is_one else [_below(f"/{part.name}", part) for part in parts]
    spec = ",".join(f"{part.name}:{part.folder}" for part in moved)
    argv = command(first.folder) if is_one else command(spec, "--logdir_spec")
    return Helper(
        namespace=first.found.namespace,
        purpose="tensorboard",
        mounts=tuple(mount for part in moved for mount in part.mounts),
        image=image or first.image,
        owner=first.found.manifest if is_one else None,
        node=first.node,
        deadline=DEADLINE,
        argv=tuple(argv),
        memory=MEMORY,
        user=user,
        like=first.template,
    )


def _below(folder: str, part: Summaries) -> Summaries:
    moved = tuple(replace(mount, at=f"{folder}{mount.at}") for mount in part.mounts)
    return replace(part, folder=f"{folder}{part.folder}", mounts=moved)


def _written(job: Job) -> str:
    """The first folder on a claim that a task may write to."""
    for role in job.roles:
        for mount in tensorflow_container(role.template).get("volumeMounts") or []:
            path = posixpath.normpath(str(mount.get("mountPath") or "/"))
            if not mount.get("readOnly") and claims(role.template, path, read_only=True):
                return path
    return ""
