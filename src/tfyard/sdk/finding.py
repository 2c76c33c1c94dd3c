"""Which job a name means: a TFJob of the cluster, or a run on this machine.

A name is looked for in the cluster, if one is configured, and among the runs of this folder. The cluster's wins.
`@latest` is the newest of both. `run/NAME` and `tfjob.kubeflow.org/NAME`, as `tfyard get -o name` prints them, say
which is meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import TfyardError, Usage
from tfyard.model.names import LATEST

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tfyard.backends.local.run_directory import RunDirectory
    from tfyard.kube.sync import SyncClient
    from tfyard.overview.record import RunRecord
    from tfyard.remote.jobs import Found


class ClusterJob(Struct, frozen=True):
    client: SyncClient
    found: Found


class LocalRun(Struct, frozen=True):
    directory: RunDirectory
    record: RunRecord


Target = ClusterJob | LocalRun


class Search(Struct, frozen=True, kw_only=True):
    """Where to look."""

    connect: Callable[[], SyncClient] | None = None
    """None: no cluster is configured, or none is meant."""
    is_local: bool = False
    """Only runs on this machine are meant."""
    has_namespace: bool = False
    """One is named: runs on this machine are in none."""
    say: Callable[[str], None]
    local_words: str = "--local"
    """How a caller says that the run is meant."""


def find(name: str, search: Search) -> Target:
    kind, _, rest = name.rpartition("/")
    if kind == "run":
        return _local(rest, replace(search, is_local=True))
    if kind.partition(".")[0] in ("tfjob", "tfjobs") and search.connect is not None:
        return _job_called(rest, search.connect())
    if search.connect is None:
        return _local(name, search)
    if name == LATEST:
        return _latest(search, search.connect)
    run = None if search.has_namespace else _run_called(name)
    try:
        target = _job_called(name, search.connect())
    except TfyardError as problem:
        return _instead(run, problem, search)
    if run is not None:
        where = target.found.namespace
        search.say(
            f"{name} is the TFJob in the namespace {where}; {search.local_words} means the run {run.record.name}"
        )
    return target


def all_runs() -> list[LocalRun]:
    if not has_runs():
        return []
    from tfyard.backends.local import run_directory

    found = run_directory.all_runs(home())
    return [LocalRun(run, record) for run in found if (record := run.load()) is not None]


def has_runs() -> bool:
    """Told without importing what reads them."""
    return os.path.isdir(os.path.join(_home(), "runs"))  # noqa: PTH112, PTH118


def home() -> Path:
    """Of the runs of this folder, as it is now: a notebook may change it."""
    from pathlib import Path  # slow to import

    return Path(_home())


def _home() -> str:
    return os.environ.get("TFYARD_HOME") or ".tfyard"


def _job_called(name: str, client: SyncClient) -> ClusterJob:
    from tfyard.remote import jobs

    try:
        return ClusterJob(client, jobs.find(client, client.access.namespace, name))
    except BaseException:
        client.close()
        raise


def _instead(run: LocalRun | None, problem: TfyardError, search: Search) -> LocalRun:
    """The run, if the cluster cannot say or has no such job."""
    from tfyard.remote.jobs import Missing

    if run is None:
        raise problem
    if not isinstance(problem, Missing):
        search.say(f"{problem}; this is the run {run.record.name} of this machine")
    return run


def _local(name: str, search: Search) -> LocalRun:
    from tfyard.local import runs

    if name == LATEST:
        newest = _newest_run()
        if newest is None:
            raise Usage("there are no runs here; `tfyard run FILE` starts one")
        return newest
    try:
        return LocalRun(*runs.find(name, home()))
    except Usage as problem:
        hint = "" if search.is_local else ", and no cluster is configured (no kubeconfig)"
        raise Usage(f"{problem}{hint}") from None


def _latest(search: Search, connect: Callable[[], SyncClient]) -> Target:
    from tfyard.remote import jobs

    run = None if search.has_namespace else _newest_run()
    try:
        with connect() as client:  # it can be used again
            row = jobs.newest(client, client.access.namespace)
    except TfyardError as problem:
        return _instead(run, problem, search)
    if row is None and run is None:
        raise Usage(f"there are no jobs in the namespace {client.access.namespace}, and no runs here")
    if row is None or (run is not None and run.record.started > row.job.created):
        assert run is not None
        return run
    return _job_called(row.job.name, client)


def _newest_run() -> LocalRun | None:
    return max(all_runs(), key=_started, default=None)


def _started(run: LocalRun) -> datetime:
    return run.record.started


def _run_called(name: str) -> LocalRun | None:
    """The newest run of that name or of a job of that name; not one whose name only begins so."""
    fitting = [run for run in all_runs() if name in (run.record.name, run.record.job)]
    return max(fitting, key=_started, default=None)
