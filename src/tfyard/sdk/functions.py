"""The functions of `tfyard`: start a job, here or on a cluster, and find those that were started."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from tfyard import formats
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Invalid
from tfyard.kube import Access, kubeconfig
from tfyard.kube.sync import SyncClient
from tfyard.local.settings import Settings
from tfyard.model.names import LATEST
from tfyard.sdk import finding, starting, threads
from tfyard.sdk.finding import ClusterJob, Search, Target
from tfyard.sdk.job import Job, Source
from tfyard.sdk.messages import Start
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.on_machine import OnMachine
from tfyard.sdk.run import Run

if TYPE_CHECKING:
    from tfyard.model import Manifest
    from tfyard.remote.jobs import Found
    from tfyard.remote.prepare import Prepared, Submission

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

    given, access = _job(job), _access(namespace, context, kubeconfig)
    asked = Submission(namespace=namespace or "", image=image, force=force)

    def send() -> Run:
        with SyncClient(access) as client:
            return Run(OnCluster(access, _submit(client, given.source, asked)))

    return threads.apart(send)


def find(
    name: str = LATEST,
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
        return Run(OnMachine(RunDirectory(found.directory.path.resolve())))
    found.client.close()
    return Run(OnCluster(found.client.access, found.found))


def _is_configured(*chosen: object) -> bool:
    return any(chosen) or kubeconfig.is_present(os.environ)


def _access(namespace: str | None, context: str | None, file: PathLike | None) -> Access:
    found = kubeconfig.load(os.environ, os.fspath(file or ""), context or "")
    return replace(found, namespace=namespace) if namespace else found


# --- submitting, by the code of `tfyard submit`


def _submit(client: SyncClient, source: Source, asked: Submission) -> Found:
    """`asked`: without what the source says."""
    from tfyard.remote.prepare import prepare
    from tfyard.remote.submission import submit_prepared

    with _job_file(source) as target:
        whole = replace(asked, **{**asdict(source.options), "target": target})
        prepared = prepare(whole, client.access.namespace)
    for problem in prepared.warnings:
        LOG.warning("%s", Invalid([problem]))
    return submit_prepared(client, _with_output(prepared, source), whole, LOG.info)


@contextmanager
def _job_file(source: Source) -> Iterator[str]:
    """The job file, which is removed again if it was on no disk."""
    if not source.text:
        yield source.options.target
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(formats.to_yaml(_words(source)), encoding="utf-8")
        yield str(path)


def _words(source: Source) -> Manifest:
    """Its code is found from any folder. A script has a volume for what it writes, as with `tfyard submit`."""
    from tfyard.remote.prepare import OUT, OUT_SIZE, OUT_VARIABLE

    (document,) = formats.read(source.text)
    words: Manifest = dict(document.data)
    job = formats.load(document)
    if job.code is not None and job.code.kind == "folder":
        given = words["code"] if isinstance(words["code"], dict) else {}
        words["code"] = {**given, "path": os.path.abspath(job.code.source)}  # noqa: PTH100
    if source.script and "volumes" not in words:
        words["volumes"] = {"out": {"claim": f"{words['name']}-out", "size": OUT_SIZE, "at": OUT}}
        words["env"] = {OUT_VARIABLE: OUT, **words.get("env", {})}
    return words


def _with_output(prepared: Prepared, source: Source) -> Prepared:
    """The claim of a script's volume gets the class and the access that this cluster offers."""
    is_ours = bool(source.script) and [each["metadata"]["name"] for each in prepared.job.objects] == [
        f"{prepared.job.name}-out"
    ]
    return replace(prepared, makes_output=is_ours)
