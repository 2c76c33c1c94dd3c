"""Reaches a path of a job: in a helper pod if it is on a claim, else in the task's own container."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from tfyard import formats
from tfyard.errors import Usage
from tfyard.file_trees import CopyError
from tfyard.kube import Client, Forbidden, Kind, NotFound, list_all, requests
from tfyard.model import Job, Manifest
from tfyard.model.names import JOB_NAME
from tfyard.overview import mounts
from tfyard.overview.objects import Claim, Pod

from . import helper_pods, pod_starts, tasks
from .container_files import ContainerFiles, Where
from .helper_pods import DEFAULT_IMAGE, Helper, Mount
from .jobs import Found
from .tasks import NotRunning

SHARED = {"ReadWriteMany", "ReadOnlyMany"}
LONGEST_COPY = 6 * 3600
"""Seconds; a copy that takes longer goes on in another pod."""

OTHER_USER = "--helper-user UID copies as another user, such as 0"

Say = Callable[[str], None]
_PODS, _CLAIM = Kind(Pod), msgspec.json.Decoder(Claim)


class Options(Struct, frozen=True, kw_only=True):
    task: str = ""
    """Whose path it is; default: the first that has it on a claim, else the first that runs."""
    image: str = DEFAULT_IMAGE
    """Of the helper pod."""
    user: int | None = None
    """Of the helper pod; default: that of the job's pods, if it names one."""
    into: bool = False
    """What is copied gets its own name in the destination, which is a folder."""


DEFAULT_OPTIONS = Options()


class JobPath(Struct, frozen=True, kw_only=True):
    found: Found
    path: str
    options: Options = DEFAULT_OPTIONS
    writes: bool = False


def job_of(found: Found) -> Job:
    job = formats.check(found.manifest).job
    if job is None or not job.roles:
        raise Usage(f"{found.name} cannot be read: `tfyard describe {found.name}` says why")
    return job


@asynccontextmanager
async def opened(client: Client, wanted: JobPath, say: Say) -> AsyncIterator[ContainerFiles]:
    job, found = job_of(wanted.found), wanted.found
    role = mounts.role_of(job, wanted.options.task, wanted.path)
    pods = await _pods(client, found)
    needed = claims(role.template, wanted.path, read_only=not wanted.writes)
    if not needed:
        yield ContainerFiles(client, _in_task(job, wanted, pods))
        return
    helper = Helper(
        namespace=found.namespace,
        purpose="copy",
        mounts=needed,
        image=wanted.options.image,
        owner=found.manifest,
        node=await _node(client, found, needed, pods),
        deadline=LONGEST_COPY,
        like=role.template,
        user=wanted.options.user,
    )
    async with helper_pods.running(client, helper, say) as pod:
        try:
            yield ContainerFiles(client, Where(found.namespace, pod, helper_pods.CONTAINER))
        except CopyError as problem:
            if "ermission denied" in str(problem):
                raise CopyError(f"{problem}; {OTHER_USER}") from None
            raise


def claims(template: Manifest, path: str, *, read_only: bool) -> tuple[Mount, ...]:
    """Mounts that show the path, and all below it, where the task has it. Empty: it is on no claim."""
    nearest = mounts.nearest(template, path)
    if nearest is None or not nearest.claim:
        return ()
    found = [nearest, *mounts.below(template, path)]
    return tuple(Mount(each.claim, each.at, each.sub_path, read_only) for each in found if each.claim)


async def _pods(client: Client, found: Found) -> dict[str, Pod]:
    """By task."""
    path, of = requests.PODS.path(found.namespace), requests.selecting(labels={JOB_NAME: found.name})
    items = (await list_all(client, _PODS, path, of)).items
    return {pod.task: pod for pod in items if pod_starts.belongs(pod, found)}


def _in_task(job: Job, wanted: JobPath, pods: dict[str, Pod]) -> Where:
    names = [wanted.options.task] if wanted.options.task else [each.name for each in job.tasks()]
    running = [name for name in names if name in pods and tasks.is_running(pods[name])]
    try:
        found = tasks.container_of(wanted.found, pods, (running or names)[0])
    except NotRunning as problem:
        raise CopyError(f"{wanted.path} is on no claim, and {problem}{mounts.kept(job)}") from None
    return Where(found.namespace, found.pod, found.container)


async def node_of(client: Client, found: Found, needed: tuple[Mount, ...]) -> str:
    """Where a helper pod must run; empty: anywhere."""
    return await _node(client, found, needed, await _pods(client, found))


async def _node(client: Client, found: Found, needed: tuple[Mount, ...], pods: dict[str, Pod]) -> str:
    """Where a claim is attached that only one node can use at a time; empty: anywhere."""
    for name in dict.fromkeys(mount.claim for mount in needed):
        users = [
            pod for pod in pods.values() if name in pod.claims and not pod.is_over and pod.spec.node_name
        ]
        if not await _is_shared(client, found, name) and users:
            return users[0].spec.node_name
    return ""


async def _is_shared(client: Client, found: Found, name: str) -> bool:
    """A claim that may not be seen could be of any kind."""
    try:
        claim = await client.send(requests.get(requests.CLAIMS.path(found.namespace, name)), _CLAIM)
    except Forbidden:
        return False
    except NotFound:
        raise CopyError(f"the claim {name} of {found.name} does not exist any more") from None
    return bool(SHARED & set(claim.spec.access_modes))
