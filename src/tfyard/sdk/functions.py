"""The functions of `tfyard`: start a job, on this machine or on a cluster, and find jobs."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from msgspec.structs import asdict, replace

from tfyard import formats
from tfyard.errors import Invalid
from tfyard.job_input import script
from tfyard.kube import Access, kubeconfig
from tfyard.kube.sync import SyncClient
from tfyard.local.settings import RunOptions
from tfyard.model.names import LATEST
from tfyard.remote.submitting.prepare import PreparedSubmission, Submission, prepare
from tfyard.remote.submitting.submission import CannotSubmit, submit_prepared
from tfyard.sdk import comparing, finding, starting, threads
from tfyard.sdk.comparing import RunComparison
from tfyard.sdk.finding import Search
from tfyard.sdk.job import Job, Source
from tfyard.sdk.jobs_on_cluster import JobsOnCluster
from tfyard.sdk.messages import StartRun, StartSweep
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.on_machine import OnMachine
from tfyard.sdk.run import Run, place_of
from tfyard.sdk.runs_on_machine import RunsOnMachine
from tfyard.sdk.sweep import Sweep, SweepWords, described_sweep, of_place

if TYPE_CHECKING:
    from tfyard.model import Manifest
    from tfyard.remote.reading.jobs import StoredTFJob

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
    """Start a job on this machine, each task as a real process, and return at once. The run is stopped when this
    program ends.

    `python`: the interpreter of the tasks; default: this one. `mount`: volume -> directory to use for it.
    `metric`: a regex for metrics. `tensorboard`, `kill` and `share_gpus` are those of `tfyard run`.
    """
    described = _job(job)
    settings = replace(
        _settings(described.source, python, mount),
        tensorboard=None if tensorboard is False else "" if tensorboard is True else os.fspath(tensorboard),
        metric=metric,
        share_gpus=share_gpus,
        kill=tuple(kill),
    )
    return Run(OnMachine(starting.start(StartRun(settings), described.source.text)))


def between(low: float, high: float, *, log: bool = False) -> dict[str, float | bool]:
    """All numbers between two, as the values of a parameter of `sweep`. If both are whole numbers, so are the
    values. `log`: orders of magnitude are searched evenly, as is usual for learning rates."""
    return {"from": low, "to": high, "log": log}


def sweep(
    job: Job | PathLike,
    over: Mapping[str, Sequence[object] | Mapping[str, object]] | None = None,
    objective: str = "",
    **words: Unpack[SweepWords],
) -> Sweep:
    """Start a job many times on this machine, each time with other values, and return at once. The sweep is
    stopped when this program ends; `resume()` goes on with it. `job` can also be a sweep file, whose words the
    arguments replace.

    `over`: parameter -> list of values, or `between(1e-4, 1e-1, log=True)`; `{lr}` in the job stands for the value
    of lr, else lr is the variable LR. `objective`: `"max auc"`, `"min best loss"`. `name`, `trials`, `parallel`,
    `sampler`, `prune`, `seed`, `deadline`, `retryTrials` are words of the sweep file; `python`, `mount`, `metric`
    and `share_gpus` are those of `run`.
    """
    chosen = {"over": over, "objective": objective or None, **words}
    described, spec = described_sweep(job, {key: value for key, value in chosen.items() if value is not None})
    settings = replace(
        _settings(described.source, words.get("python"), words.get("mount")),
        metric=words.get("metric"),
        share_gpus=words.get("share_gpus", False),
        name=None,
    )
    started = starting.start(StartSweep(spec, settings), _text_for_trials(described.source))
    from tfyard.local.sweeps import SweepFolder  # 30 ms with the next, which runs do not need
    from tfyard.sdk.sweep_on_machine import SweepOnMachine

    return Sweep(SweepOnMachine(SweepFolder(started.path)))


def _text_for_trials(source: Source) -> str:
    """The job file. A script gets a volume at /out, in which each trial has a folder of its own."""
    if not source.script or not source.text:
        return source.text
    (document,) = formats.read(source.text)
    has_own = "volumes" in document.data
    return source.text if has_own else formats.to_yaml(script.with_output(document.data))


def submit(
    job: Job | PathLike,
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: PathLike | None = None,
    image: str = "",
    force: bool = False,
) -> Run:
    """Submit a job with its code to a cluster and return at once. If checks say that it cannot run there,
    `CannotSubmit` lists all problems; `force` submits it anyway.

    `image`: image of every task, instead of the job's own. A script has a volume at /out, as with `tfyard submit`.
    """
    described, access = _job(job), _access(namespace, context, kubeconfig)
    submission = Submission(namespace=namespace or "", image=image, force=force)

    def send() -> Run:
        with SyncClient(access) as client:
            return Run(OnCluster(access, _submit(client, described.source, submission), LOG.info))

    return threads.apart(send)


def find(
    name: str = LATEST,
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: PathLike | None = None,
    local: bool = False,
) -> Run:
    """Find a job of the cluster by its name, or a run of this folder by its name, its job's name, or a beginning
    that fits one job; `@latest` is the newest. A sweep is found as a `Sweep`. With `local`, only runs on this
    machine are searched."""
    is_cluster = not local and _is_configured(namespace, context, kubeconfig)
    search = Search(
        connect=(lambda: SyncClient(_access(namespace, context, kubeconfig))) if is_cluster else None,
        is_local=local,
        has_namespace=bool(namespace),
        say=LOG.info,
        local_words="local=True",
        asks_again=True,
    )
    return of_place(finding.find(name, search))


def compare(run: Run | str, *others: Run | str) -> RunComparison:
    """Runs side by side, the first one as the baseline: what differs, and their metrics. Names are found as by
    `find`. A single run is compared with the one before it of the same name."""
    places = [place_of(find(each) if isinstance(each, str) else each) for each in (run, *others)]
    return RunComparison(comparing.compare(places))


def runs(
    *, namespace: str | None = None, context: str | None = None, kubeconfig: PathLike | None = None
) -> list[Run]:
    """The runs of this folder, newest first. With a namespace, context or kubeconfig: TFJobs of the cluster."""
    if not (namespace or context or kubeconfig):
        here = RunsOnMachine(asks_again=True).places()
        return [
            of_place(place) for place in sorted(here, key=lambda place: place.summary().created, reverse=True)
        ]
    access = _access(namespace, context, kubeconfig)
    there = JobsOnCluster(lambda: SyncClient(access), LOG.info, asks_again=True)
    return [of_place(place) for place in there.places()]


def _settings(source: Source, python: PathLike | None, mount: Mapping[str, PathLike] | None) -> RunOptions:
    return RunOptions(
        **asdict(source.options),
        python=sys.executable if python is None else os.fspath(python),
        mount=tuple(f"{volume}={os.fspath(path)}" for volume, path in (mount or {}).items()),
        sources=source.files,
    )


def _job(job: Job | PathLike) -> Job:
    return job if isinstance(job, Job) else Job(job)


def _is_configured(*chosen: object) -> bool:
    return any(chosen) or kubeconfig.is_present(os.environ)


def _access(namespace: str | None, context: str | None, file: PathLike | None) -> Access:
    access = kubeconfig.load(os.environ, os.fspath(file or ""), context or "")
    return replace(access, namespace=namespace) if namespace else access


# --- submitting, as `tfyard submit` does


def _submit(client: SyncClient, source: Source, submission: Submission) -> StoredTFJob:
    """Submit a job. `submission` has the options of the cluster, `source` those of the job."""
    with _job_file(source) as target:
        whole = replace(submission, **{**asdict(source.options), "target": target})
        prepared = prepare(whole, client.access.namespace)
    for problem in prepared.warnings:
        LOG.warning("%s", Invalid([problem]))
    try:
        return submit_prepared(client, _with_output(prepared, source), whole, LOG.info)
    except CannotSubmit as problem:
        raise CannotSubmit(problem.findings, anyway="force=True") from None


@contextmanager
def _job_file(source: Source) -> Iterator[str]:
    """The path of the job file; a temporary file if the job was made from words."""
    if not source.text:
        yield source.options.target
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(formats.to_yaml(_words(source)), encoding="utf-8")
        yield str(path)


def _words(source: Source) -> Manifest:
    """The job file with an absolute code path; a script gets a volume at /out, as in `tfyard submit`."""
    (document,) = formats.read(source.text)
    words: Manifest = dict(document.data)
    job = formats.load(document)
    if source.script and job.code is None:
        raise script.outside(source.script)
    if job.code is not None and job.code.kind == "folder":
        code = words["code"] if isinstance(words["code"], dict) else {}
        words["code"] = {**code, "path": os.path.abspath(job.code.source)}  # noqa: PTH100
    if source.script and "volumes" not in words:
        words = script.with_output(words)
    return words


def _with_output(prepared: PreparedSubmission, source: Source) -> PreparedSubmission:
    """Let the claim of a script's volume get a storage class and access mode of this cluster."""
    claims = [claim["metadata"]["name"] for claim in prepared.job.objects]
    return replace(prepared, makes_output=bool(source.script) and claims == [f"{prepared.job.name}-out"])
