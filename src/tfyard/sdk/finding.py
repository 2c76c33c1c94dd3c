"""Finds a job by its name: a TFJob of the cluster, or a run on this machine.

A name is searched in the cluster, if one is configured, and among the runs of this folder; a TFJob takes
precedence. `@latest` is the newest of both. `run/NAME` and `tfjob.kubeflow.org/NAME`, as `tfyard get -o name`
prints them, are unambiguous. The beginning of a run's name is enough to read, if it fits one job; to change a job,
its whole name is needed. The name of a trial that runs again means its newest attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import NoSuchJob, TfyardError
from tfyard.kube import Forbidden
from tfyard.model.callbacks import Say
from tfyard.model.names import LATEST
from tfyard.remote.reading import jobs
from tfyard.remote.sweeps import attempts, store
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.on_machine import OnMachine, all_runs, has_runs, has_sweeps, home

if TYPE_CHECKING:
    from tfyard.backends.local.run_directory import RunDirectory
    from tfyard.kube.sync import SyncClient
    from tfyard.model.run_record import RunRecord
    from tfyard.remote.reading.jobs import StoredTFJob
    from tfyard.sdk.place import Place

    RecordedRun = tuple[RunDirectory, RunRecord]


class Search(Struct, frozen=True, kw_only=True):
    """Where to search, and how to report."""

    connect: Callable[[], SyncClient] | None = None
    """Connects to the cluster; None: no cluster is configured, or it is not to be searched."""
    is_local: bool = False
    """Search only runs on this machine."""
    is_whole: bool = False
    """The name must be whole, because the job will be changed."""
    has_namespace: bool = False
    """The caller named a namespace, so runs on this machine are not searched."""
    say: Say
    local_words: str = "--local"
    """The option or argument that selects runs on this machine, for messages."""
    asks_again: bool = False
    """The job is used for long, maybe from other folders: each question reads it again."""


def find(name: str, search: Search) -> Place:
    kind, _, short_name = name.rpartition("/")
    if (sweep := _sweep_called(kind, short_name, search)) is not None:
        return sweep
    if kind == "run":
        return _local(short_name, replace(search, is_local=True))
    if kind == "sweep" and search.connect is not None:
        return _sweep_of_cluster(short_name, search, search.connect())
    if kind.partition(".")[0] in ("tfjob", "tfjobs") and search.connect is not None:
        return _job_called(short_name, search, search.connect(), is_exact=True)
    if search.connect is None:
        return _local(name, search)
    if name == LATEST:
        return _latest(search, search.connect)
    run = None if search.has_namespace else _run_called(name)
    try:
        job = _job_or_sweep(name, search, search.connect())
    except TfyardError as problem:
        return _instead(name, run, problem, search)
    if run is not None:
        means = f"{search.local_words} means the run {run[1].name}"
        search.say(f"{job.title} is in the namespace {job.namespace}; {means}")
    return job


def _sweep_called(kind: str, name: str, search: Search, *, is_required: bool = True) -> Place | None:
    """The sweep of this name on this machine; None: there is none."""
    if kind not in ("", "sweep", "run") or not has_sweeps():
        return None
    # 70 ms, which folders without sweeps do not need.
    from tfyard.local import sweeps
    from tfyard.sdk.sweep_on_machine import SweepOnMachine

    folder = None if search.has_namespace else sweeps.called(name, Path(home()))
    if folder is None and kind == "sweep" and not search.is_whole:
        folder = sweeps.begun(name, Path(home()))
    if kind == "run" and folder is not None and folder.name != name:
        return None  # that is the name of a job, whose runs are meant
    if folder is None and kind == "sweep" and is_required and search.connect is None:
        raise NoSuchJob(f"the sweep {name} was not found; `tfyard get --local` lists them")
    return SweepOnMachine(folder) if folder else None


def _sweep_of_cluster(name: str, search: Search, client: SyncClient) -> Place:
    with client:
        found = store.read(client, client.access.namespace, name)
    if found is None:
        where = f"the namespace {client.access.namespace}"
        raise NoSuchJob(f"there is no sweep {name} in {where}; `tfyard get` lists them")
    from tfyard.sdk.sweep_on_cluster import SweepOnCluster  # 40 ms, which jobs do not need

    return SweepOnCluster(client.access, found, search.say)


def _job_or_sweep(name: str, search: Search, client: SyncClient) -> Place:
    """The TFJob of this name, else the sweep."""
    try:
        return _job_called(name, search, client)
    except NoSuchJob as problem:
        try:
            return _sweep_of_cluster(name, search, client)
        except (NoSuchJob, Forbidden):
            raise problem from None


def _job_called(name: str, search: Search, client: SyncClient, *, is_exact: bool = False) -> OnCluster:
    """`is_exact`: of a trial that runs again, the attempt of this name is meant."""
    try:
        job = jobs.find(client, client.access.namespace, name)
        if not is_exact:
            job = _newest_attempt(client, job, search.say)
    except BaseException:
        client.close()
        raise
    if not search.asks_again:
        return OnCluster(client.access, job, search.say, client)
    client.close()
    return OnCluster(client.access, job, search.say)


def _newest_attempt(client: SyncClient, job: StoredTFJob, say: Say) -> StoredTFJob:
    """The first attempt at a trial has the name of the trial; of several, the newest one is meant by it."""
    *earlier, newest = attempts.of_trial(client, job)
    if earlier:
        others = ", ".join([f"tfjob/{job.name}", *(each.name for each in earlier[1:])])
        say(_means(job.name, newest.name, others))
    return newest


def _means(trial: str, newest: str, earlier: str) -> str:
    return f"{trial} means {newest}, the newest attempt at this trial; before it: {earlier}"


def _instead(name: str, run: RecordedRun | None, problem: TfyardError, search: Search) -> Place:
    """The run of this name, if the cluster cannot be asked or has no such job."""
    if run is None:
        raise problem
    if not isinstance(problem, NoSuchJob):
        search.say(f"{problem}; this is the run {run[1].name} of this machine")
    return _run_place(name, run, search)


def _run_place(name: str, found: RecordedRun, search: Search) -> OnMachine:
    """The run. Of the runs of a trial, its name means the newest, as that of any job."""
    run, record = found
    if record.trial and record.trial.attempt > 1 and name == record.job:
        from tfyard.backends.local.run_names import runs_of  # 20 ms, which jobs of a cluster do not need

        before = next(runs_of(record.job, Path(home()), before=run.name), None)
        if before is not None:
            search.say(_means(name, run.name, before.name))
    return OnMachine(run, asks_again=search.asks_again)


def _local(name: str, search: Search) -> Place:
    from tfyard.local import runs  # 25 ms with planner/ and node/, which jobs of a cluster do not need

    if name == LATEST:
        newest = _newest(all_runs())
        if newest is None:
            raise NoSuchJob("there are no runs here; `tfyard run FILE` starts one")
        return _newest_place(newest, search)
    try:
        return _run_place(name, runs.find(name, Path(home()), search.say, whole=search.is_whole), search)
    except NoSuchJob as problem:
        if not search.is_whole and (sweep := _sweep_called("sweep", name, search, is_required=False)):
            return sweep
        hint = "" if search.is_local else " (no cluster is configured: there is no kubeconfig)"
        raise NoSuchJob(f"{problem}{hint}") from None


def _latest(search: Search, connect: Callable[[], SyncClient]) -> Place:
    run = None if search.has_namespace else _newest(all_runs())
    try:
        with connect() as client:  # a closed client can be used again
            rows = jobs.summaries(client, jobs.Scope(client.access.namespace))
    except TfyardError as problem:
        return _instead(LATEST, run, problem, search)
    row = max(rows, key=lambda row: row.job.created, default=None)
    if run is not None and (row is None or run[1].started > row.job.created):
        return _newest_place(run, search)
    if row is None:
        raise NoSuchJob(f"there are no jobs in the namespace {client.access.namespace}, and no runs here")
    return _job_or_sweep(row.sweep or row.job.name, search, client)


def _newest_place(run: RecordedRun, search: Search) -> Place:
    """The newest run; if that is a trial, its sweep, which is what lists show."""
    trial = run[1].trial
    sweep = _sweep_called("sweep", trial.sweep, search, is_required=False) if trial else None
    return sweep or OnMachine(run[0], asks_again=search.asks_again)


def _newest(runs: list[RecordedRun]) -> RecordedRun | None:
    return max(runs, key=lambda run: run[1].started, default=None)


def _run_called(name: str) -> RecordedRun | None:
    """The newest run with exactly this name, or of a job with this name."""
    if not has_runs():
        return None
    from tfyard.backends.local.run_names import run_called  # 20 ms, which folders without runs do not need

    run = run_called(name, Path(home()))
    record = run.load() if run else None
    return (run, record) if run and record else None
