"""Reaches a path of a job: in a helper pod if it is on a claim, else in the task's own container."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from tfyard import formats
from tfyard.errors import NotRunning, Usage
from tfyard.file_trees import CopyError
from tfyard.kube import Client, Forbidden, Kind, NotFound, list_all, requests
from tfyard.model import Job, Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import JOB_NAME
from tfyard.overview import mounts
from tfyard.remote.copying.container_files import ContainerAddress, ContainerFiles
from tfyard.remote.helper_pods import helper_pod
from tfyard.remote.helper_pods.helper_pod import DEFAULT_IMAGE, HelperPod, Mount
from tfyard.remote.reading import tasks
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.views.objects import Claim
from tfyard.views.pods import PodDetails

SHARED = {"ReadWriteMany", "ReadOnlyMany"}
LONGEST_COPY = 6 * 3600
"""Seconds; a copy that takes longer goes on in another pod."""

OTHER_USER = "--helper-user UID copies as another user, such as 0"

_PODS, _CLAIM = Kind(PodDetails), msgspec.json.Decoder(Claim)


class CopyOptions(Struct, frozen=True, kw_only=True):
    task: str = ""
    """Task that sees the path; default: the first that has it on a claim, else the first that runs."""
    image: str = DEFAULT_IMAGE
    """Image of the helper pod."""
    user: int | None = None
    """User of the helper pod; default: that of the job's pods, if it names one."""
    into: bool = False
    """Whether the destination is a folder, in which the copy gets the name of its source."""


DEFAULT_OPTIONS = CopyOptions()


class JobPath(Struct, frozen=True, kw_only=True):
    tfjob: StoredTFJob
    path: str
    options: CopyOptions = DEFAULT_OPTIONS
    writes: bool = False


def job_of(tfjob: StoredTFJob) -> Job:
    job = formats.check(tfjob.manifest).job
    if job is None or not job.roles:
        raise Usage(f"{tfjob.name} cannot be read: `tfyard describe {tfjob.name}` says why")
    return job


@asynccontextmanager
async def opened(client: Client, wanted: JobPath, say: Say) -> AsyncIterator[ContainerFiles]:
    job, tfjob = job_of(wanted.tfjob), wanted.tfjob
    role = mounts.role_of(job, wanted.options.task, wanted.path)
    pods = await _pods(client, tfjob)
    needed = claims(role.template, wanted.path, read_only=not wanted.writes)
    if not needed:
        yield ContainerFiles(client, _in_task(job, wanted, pods))
        return
    helper = HelperPod(
        namespace=tfjob.namespace,
        purpose="copy",
        mounts=needed,
        image=wanted.options.image,
        owner=tfjob.manifest,
        node=await _node(client, tfjob, needed, pods),
        deadline=LONGEST_COPY,
        like=role.template,
        user=wanted.options.user,
    )
    async with helper_pod.running(client, helper, say) as pod:
        try:
            yield ContainerFiles(client, ContainerAddress(tfjob.namespace, pod, helper_pod.CONTAINER))
        except CopyError as problem:
            if "ermission denied" in str(problem):
                raise CopyError(f"{problem}; {OTHER_USER}") from None
            raise


def claims(template: Manifest, path: str, *, read_only: bool) -> tuple[Mount, ...]:
    """Mounts that show the path, and all below it, where the task has it. Empty: it is on no claim."""
    nearest = mounts.nearest(template, path)
    if nearest is None or not nearest.claim:
        return ()
    mounted = [nearest, *mounts.below(template, path)]
    return tuple(Mount(each.claim, each.at, each.sub_path, read_only) for each in mounted if each.claim)


async def _pods(client: Client, tfjob: StoredTFJob) -> dict[str, PodDetails]:
    """Pods of the job by task."""
    path, of = requests.PODS.path(tfjob.namespace), requests.selecting(labels={JOB_NAME: tfjob.name})
    items = (await list_all(client, _PODS, path, of)).items
    return {pod.task: pod for pod in items if pod.is_of(tfjob.uid)}


def _in_task(job: Job, wanted: JobPath, pods: dict[str, PodDetails]) -> ContainerAddress:
    names = [wanted.options.task] if wanted.options.task else [each.name for each in job.tasks()]
    running = [name for name in names if name in pods and tasks.is_running(pods[name])]
    try:
        container = tasks.container_of(wanted.tfjob, pods, (running or names)[0])
    except NotRunning as problem:
        raise CopyError(f"{wanted.path} is on no claim, and {problem}{mounts.kept(job)}") from None
    return ContainerAddress(container.namespace, container.pod, container.container)


async def node_of(client: Client, tfjob: StoredTFJob, needed: tuple[Mount, ...]) -> str:
    """Node on which a helper pod must run; empty: any."""
    return await _node(client, tfjob, needed, await _pods(client, tfjob))


async def _node(
    client: Client, tfjob: StoredTFJob, needed: tuple[Mount, ...], pods: dict[str, PodDetails]
) -> str:
    """Node of a claim that only one node can use at a time; empty: any."""
    for name in dict.fromkeys(mount.claim for mount in needed):
        users = [
            pod for pod in pods.values() if name in pod.claims and not pod.is_over and pod.spec.node_name
        ]
        if not await _is_shared(client, tfjob, name) and users:
            return users[0].spec.node_name
    return ""


async def _is_shared(client: Client, tfjob: StoredTFJob, name: str) -> bool:
    """Whether several nodes can use the claim; False if it may not be read."""
    try:
        claim = await client.send(requests.get(requests.CLAIMS.path(tfjob.namespace, name)), _CLAIM)
    except Forbidden:
        return False
    except NotFound:
        raise CopyError(f"the claim {name} of {tfjob.name} does not exist any more") from None
    return bool(SHARED & set(claim.spec.access_modes))
