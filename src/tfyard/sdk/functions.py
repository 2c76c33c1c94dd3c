"""The functions of `tfyard`: start a job, here or on a cluster, and find those that were started."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict, replace

from tfyard.kube import Access, kubeconfig
from tfyard.kube.sync import SyncClient
from tfyard.local.settings import Settings
from tfyard.sdk import finding, starting, threads
from tfyard.sdk.finding import ClusterJob, Search, Target
from tfyard.sdk.job import Job
from tfyard.sdk.messages import Start
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.on_machine import OnMachine
from tfyard.sdk.run import Run

LOG = logging.getLogger("tfyard")
PathLike = str | os.PathLike[str]


def run(
    job: Job | PathLike,
    *,
    python: PathLike | None = None,
    mount: Mapping[str, PathLike] | None = None,
    tensorboard: bool | PathLike = False,
    metric: str | None = None,
    share_gpus: bool = False,
    kill: Sequence[str] = (),
) -> Run:
    """Start a job on this machine, each task a real process, and return at once. It goes on until it has ended,
    or this program ends: nothing is left behind.

    `python`: the interpreter of the tasks; default: this one. `mount`: volume -> directory to use for it.
    `metric`: a regex for metrics. `tensorboard`, `kill` and `share_gpus` are those of `tfyard run`.
    """
    given = _job(job)
    asked = Settings(
        **asdict(given.source.options),
        python=sys.executable if python is None else os.fspath(python),
        mount=tuple(f"{volume}={os.fspath(path)}" for volume, path in (mount or {}).items()),
        tensorboard=None if tensorboard is False else "" if tensorboard is True else os.fspath(tensorboard),
        metric=metric,
        share_gpus=share_gpus,
        kill=tuple(kill),
    )
    return Run(OnMachine(starting.start(Start(asked), given.source.text)))


def submit(
    job: Job | PathLike,
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: PathLike | None = None,
    image: str = "",
    force: bool = False,
) -> Run:
    """Submit a job to a cluster and return at once. First it is checked whether it can run there; what stands in
    its way is a `CannotSubmit` with all of it, unless `force` is given. The code of the job goes with it.

    `image`: of every task, instead of the job's own. A script has a volume at /out, as with `tfyard submit`.
    """
    from tfyard.remote.prepare import Submission
    from tfyard.sdk import submitting

    given, access = _job(job), _access(namespace, context, kubeconfig)
    asked = Submission(namespace=namespace or "", image=image, force=force)

    def send() -> Run:
        with SyncClient(access) as client:
            return Run(OnCluster(access, submitting.submit(client, given.source, asked)))

    return threads.apart(send)


def find(
    name: str = finding.LATEST,
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: PathLike | None = None,
    local: bool = False,
) -> Run:
    """A job of the cluster, or a run of this folder, by its name or the beginning of it; `@latest` is the newest.
    With `local`, only runs on this machine."""
    is_cluster = not local and _is_configured(namespace, context, kubeconfig)
    search = Search(
        connect=(lambda: SyncClient(_access(namespace, context, kubeconfig))) if is_cluster else None,
        is_local=local,
        has_namespace=bool(namespace),
        say=LOG.info,
        local_words="local=True",
    )
    return _run_of(finding.find(name, search))


def runs(
    *, namespace: str | None = None, context: str | None = None, kubeconfig: PathLike | None = None
) -> list[Run]:
    """The runs of this folder, newest first. With a namespace, a context or a kubeconfig: the jobs there."""
    if not (namespace or context or kubeconfig):
        return [_run_of(found) for found in finding.all_runs()]
    from tfyard.remote import jobs

    access = _access(namespace, context, kubeconfig)
    with SyncClient(access) as client:
        found = jobs.manifests(client, jobs.Scope(access.namespace))
    return [Run(OnCluster(access, each)) for each in found]


def _job(given: Job | PathLike) -> Job:
    return given if isinstance(given, Job) else Job(given)


def _run_of(found: Target) -> Run:
    if not isinstance(found, ClusterJob):
        return Run(OnMachine(found.directory))
    found.client.close()
    return Run(OnCluster(found.client.access, found.found))


def _is_configured(*chosen: object) -> bool:
    return any(chosen) or kubeconfig.is_present(os.environ)


def _access(namespace: str | None, context: str | None, file: PathLike | None) -> Access:
    found = kubeconfig.load(os.environ, os.fspath(file or ""), context or "")
    return replace(found, namespace=namespace) if namespace else found
