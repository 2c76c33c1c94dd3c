"""Jupyter for a job of a cluster: the one beside it, or one in a short-lived pod with the job's claims."""

from tfyard.kube import Client
from tfyard.model import Job
from tfyard.overview import mounts
from tfyard.remote.copying import job_paths
from tfyard.remote.helper_pods import pod_follow
from tfyard.remote.helper_pods.helper_pod import HelperPod, Mount
from tfyard.remote.helper_pods.pod_follow import PodChoice
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.render import RenderOptions, notebook, scripts
from tfyard.render.tfjob import hosts

DEADLINE = 8 * 3600
"""Seconds until the pod of a killed client ends; other clients delete theirs."""
MEMORY = "4Gi"


async def beside(client: Client, tfjob: StoredTFJob) -> PodChoice | None:
    """Jupyter that `tfyard notebook render` made for the job, if it runs."""
    labels = {"tensorflow": "jupyter", "app.kubernetes.io/instance": f"{tfjob.name}-jupyter"}
    return await pod_follow.beside(client, tfjob, f"Jupyter for {tfjob.name}", labels)


async def helper(
    client: Client, tfjob: StoredTFJob, image: str, password: str, user: int | None = None
) -> HelperPod:
    """Pod with every claim of the job where its tasks have it. Only the hash of the password is in the pod."""
    job = job_paths.job_of(tfjob)
    needed = _claims(job)
    hashed = notebook.hash_password(password, tfjob.namespace, tfjob.name)
    return HelperPod(
        namespace=tfjob.namespace,
        purpose="notebook",
        mounts=needed,
        image=image,
        owner=tfjob.manifest,
        node=await job_paths.node_of(client, tfjob, needed),
        deadline=DEADLINE,
        argv=_argv(job, needed, hashed),
        memory=MEMORY,
        user=user,
        like=job.roles[0].template,
    )


def _claims(job: Job) -> tuple[Mount, ...]:
    by_path: dict[str, Mount] = {}
    for role in job.roles:
        for each in mounts.below(role.template, "/"):
            if each.claim:
                by_path.setdefault(each.at, Mount(each.claim, each.at, each.sub_path))
    return tuple(by_path.values())


def _argv(job: Job, needed: tuple[Mount, ...], hashed: str) -> tuple[str, ...]:
    """Command of Jupyter in the folder of the first claim: files elsewhere are lost with the pod."""
    cluster = notebook.cluster_of(job, hosts(job, RenderOptions()))
    env = {
        notebook.CLUSTER_CONFIG: notebook.cluster_config(cluster),
        "NOTEBOOKS": needed[0].at if needed else "/tmp",
        "HOME": "/tmp",
    }
    variables = [f"{name}={value}" for name, value in env.items()]
    options = [f"--PasswordIdentityProvider.hashed_password={hashed}", f"--port={notebook.PORT}"]
    return ("env", *variables, "sh", "-c", scripts.read("jupyter.sh"), "jupyter", *options)
