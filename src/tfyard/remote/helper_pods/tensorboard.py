"""TensorBoard for jobs of a cluster: the one beside a job, or one in a short-lived pod that reads their claims."""

import posixpath
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.kube import Client
from tfyard.model import Job, Manifest, tensorflow_container
from tfyard.overview import mounts
from tfyard.planner.tensorboard import command
from tfyard.remote.copying.job_paths import claims, job_of
from tfyard.remote.helper_pods import pod_follow
from tfyard.remote.helper_pods.helper_pod import HelperPod, Mount
from tfyard.remote.helper_pods.pod_follow import PodChoice
from tfyard.remote.reading.jobs import StoredTFJob

DEADLINE = 8 * 3600
"""Seconds until the pod of a killed client ends; other clients delete theirs."""
MEMORY = "2Gi"
BESIDE = {"app.kubernetes.io/name": "tensorboard"}


class NoSummaries(TfyardError):
    """The folder of the summaries is not known, or no other pod can read it."""


class Summaries(Struct, frozen=True, kw_only=True):
    """Summaries of one job: a folder in a helper pod, and what must be mounted for it."""

    tfjob: StoredTFJob
    name: str
    folder: str
    mounts: tuple[Mount, ...]
    template: Manifest
    image: str
    node: str = ""
    """Node of a claim that only one node can use."""


async def beside(client: Client, tfjob: StoredTFJob) -> PodChoice | None:
    """TensorBoard that the operator or a rendered manifest keeps for the job, if it runs."""
    labels = {**BESIDE, "app.kubernetes.io/instance": tfjob.name}
    return await pod_follow.beside(client, tfjob, f"TensorBoard of {tfjob.name}", labels)


def summaries(tfjob: StoredTFJob, log_dir: str = "") -> Summaries:
    """`log_dir`: as a task sees it; default: what the job says, else all that its tasks write to a claim."""
    job = job_of(tfjob)
    board = job.tensorboard
    asked = log_dir or (board.log_dir if board else "") or _written(job)
    if not asked:
        more = "say where they are: `tensorboard: /out/logs` in the job file, or --logdir"
        raise NoSummaries(
            f"{tfjob.name} does not say where its summaries are, and does not write to a claim; {more}"
        )
    asked = mounts.normal(asked, job)
    template = mounts.role_of(job, "", asked).template
    needed = claims(template, asked, read_only=True)
    if not needed:
        kept = mounts.kept(job)
        raise NoSummaries(f"{asked} of {tfjob.name} is not on a claim, so no other pod can read it{kept}")
    image = (board.image if board else "") or str(tensorflow_container(template).get("image") or "")
    return Summaries(
        tfjob=tfjob, name=tfjob.name, folder=asked, mounts=needed, template=template, image=image
    )


def shared(parts: Sequence[Summaries]) -> list[list[Summaries]]:
    """Groups that can share a pod: of one namespace, with claims that are not in use on different nodes. Jobs for
    any node come last, and join the first group."""
    groups: dict[tuple[str, str], list[Summaries]] = {}
    for part in sorted(parts, key=lambda part: not part.node):
        namespace = part.tfjob.namespace
        known = [key for key in groups if key[0] == namespace and part.node in ("", key[1])]
        groups.setdefault(known[0] if known else (namespace, part.node), []).append(part)
    return list(groups.values())


def helper(parts: Sequence[Summaries], image: str = "", user: int | None = None) -> HelperPod:
    """Pod of TensorBoard. The folder of one job is where its tasks have it; of several, below the job's name."""
    first, is_one = parts[0], len(parts) == 1
    moved = parts if is_one else [_below(f"/{part.name}", part) for part in parts]
    spec = ",".join(f"{part.name}:{part.folder}" for part in moved)
    argv = command(first.folder) if is_one else command(spec, "--logdir_spec")
    return HelperPod(
        namespace=first.tfjob.namespace,
        purpose="tensorboard",
        mounts=tuple(mount for part in moved for mount in part.mounts),
        image=image or first.image,
        owner=first.tfjob.manifest if is_one else None,
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
