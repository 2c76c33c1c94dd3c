"""Jupyter for a job of a cluster: the one beside it, or one in a short-lived pod with the job's claims."""

from tfyard.kube import Client, Kind, list_all, requests
from tfyard.model import Job
from tfyard.overview import mounts
from tfyard.overview.objects import Pod
from tfyard.render import RenderOptions, notebook, scripts, tfjob

from . import job_paths
from .helper_pods import Helper, Mount
from .jobs import Found
from .pod_follow import Choice
from .tasks import is_running

DEADLINE = 8 * 3600
"""Seconds, for a client that is killed; one that lives deletes its pod."""
MEMORY = "4Gi"

_PODS = Kind(Pod)


async def beside(client: Client, found: Found) -> Choice | None:
    """The one that `tfyard notebook render` made for the job, if it runs."""
    labels = {"tensorflow": "jupyter", "app.kubernetes.io/instance": f"{found.name}-jupyter"}
    path = requests.PODS.path(found.namespace)
    pods = (await list_all(client, _PODS, path, requests.selecting(labels=labels))).items
    if not any(map(is_running, pods)):
        return None
    return Choice(f"Jupyter for {found.name}", found.namespace, labels, is_running)


async def helper(client: Client, found: Found, image: str, password: str, user: int | None = None) -> Helper:
    """With every claim of the job where its tasks have it. Only the hash of the password is in the pod."""
    job = job_paths.job_of(found)
    needed = _claims(job)
    hashed = notebook.hash_password(password, found.namespace, found.name)
    return Helper(
        namespace=found.namespace,
        purpose="notebook",
        mounts=needed,
        image=image,
        owner=found.manifest,
        node=await job_paths.node_of(client, found, needed),
        deadline=DEADLINE,
        argv=_argv(job, needed, hashed),
        memory=MEMORY,
        user=user,
        like=job.roles[0].template,
    )


def _claims(job: Job) -> tuple[Mount, ...]:
    found: dict[str, Mount] = {}
    for role in job.roles:
        for each in mounts.below(role.template, "/"):
            if each.claim:
                found.setdefault(each.at, Mount(each.claim, each.at, each.sub_path))
    return tuple(found.values())


def _argv(job: Job, needed: tuple[Mount, ...], hashed: str) -> tuple[str, ...]:
    """Its folder is that of the first claim: what is elsewhere goes with the pod."""
    cluster = notebook.cluster_of(job, tfjob.hosts(job, RenderOptions()))
    env = {
        notebook.CLUSTER_CONFIG: notebook.cluster_config(cluster),
        "NOTEBOOKS": needed[0].at if needed else "/tmp",
        "HOME": "/tmp",
    }
    variables = [f"{name}={value}" for name, value in env.items()]
    options = [f"--PasswordIdentityProvider.hashed_password={hashed}", f"--port={notebook.PORT}"]
    return ("env", *variables, "sh", "-c", scripts.read("jupyter.sh"), "jupyter", *options)
