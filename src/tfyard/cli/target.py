"""Which job a JOB argument means: a TFJob of the cluster, or a run on this machine.

A name is looked for in the cluster, if one is configured, and among the runs of this folder. The cluster's wins;
`--local` means the run. `@latest` is the newest of both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from tfyard.cli import cluster
from tfyard.errors import TfyardError, Usage

if TYPE_CHECKING:
    from datetime import datetime

    from tfyard.backends.local.run_directory import RunDirectory
    from tfyard.kube.sync import SyncClient
    from tfyard.overview.record import RunRecord
    from tfyard.remote.jobs import Found

LATEST = "@latest"


class ClusterJob(Struct, frozen=True):
    client: SyncClient
    found: Found


class LocalRun(Struct, frozen=True):
    directory: RunDirectory
    record: RunRecord


Target = ClusterJob | LocalRun


def find(name: str, options: Mapping[str, Any]) -> Target:
    """By the values of `cluster.job_options`."""
    if options["local"] or not cluster.is_configured(options):
        return _local(name, options)
    if name == LATEST:
        return _latest(options)
    run = None if options["namespace"] else _run_called(name)
    try:
        client = cluster.connect(options)
        target = ClusterJob(client, _find(client, name))
    except TfyardError as problem:
        return _instead(run, problem)
    if run is not None:
        where = target.found.namespace
        say(f"{name} is the TFJob in the namespace {where}; --local means the run {run.record.name}")
    return target


def name_of(found: Target) -> str:
    return found.found.name if isinstance(found, ClusterJob) else found.record.name


def say(text: str) -> None:
    """What is no data goes to stderr."""
    click.echo(f"tfyard: {text}", err=True)


def _find(client: SyncClient, name: str) -> Found:
    from tfyard.remote import jobs

    return jobs.find(client, client.access.namespace, name)


def _instead(run: LocalRun | None, problem: TfyardError) -> LocalRun:
    """The run, if the cluster cannot say or has no such job."""
    from tfyard.remote.jobs import Missing

    if run is None:
        raise problem
    if not isinstance(problem, Missing):
        say(f"{problem}; this is the run {run.record.name} of this machine")
    return run


def _local(name: str, options: Mapping[str, Any]) -> LocalRun:
    from tfyard.local import runs

    if name == LATEST:
        newest = _newest_run()
        if newest is None:
            raise Usage("there are no runs here; `tfyard run FILE` starts one")
        return newest
    try:
        return LocalRun(*runs.find(name))
    except Usage as problem:
        hint = "" if options["local"] else ", and no cluster is configured (no kubeconfig)"
        raise Usage(f"{problem}{hint}") from None


def _latest(options: Mapping[str, Any]) -> Target:
    from tfyard.remote import jobs

    run = None if options["namespace"] else _newest_run()
    try:
        client = cluster.connect(options)
        row = jobs.newest(client, client.access.namespace)
    except TfyardError as problem:
        return _instead(run, problem)
    if row is None and run is None:
        raise Usage(f"there are no jobs in the namespace {client.access.namespace}, and no runs here")
    if row is None or (run is not None and run.record.started > row.job.created):
        assert run is not None
        return run
    return ClusterJob(client, jobs.find(client, row.job.namespace, row.job.name))


def _newest_run() -> LocalRun | None:
    return max(all_runs(), key=_started, default=None)


def _started(run: LocalRun) -> datetime:
    return run.record.started


def _run_called(name: str) -> LocalRun | None:
    """The newest run of that name or of a job of that name; not one whose name only begins so."""
    fitting = [run for run in all_runs() if name in (run.record.name, run.record.job)]
    return max(fitting, key=_started, default=None)


def all_runs() -> list[LocalRun]:
    if not has_runs():
        return []
    from tfyard.backends.local import run_directory

    return [LocalRun(run, record) for run in run_directory.all_runs() if (record := run.load()) is not None]


def wants_runs(options: Mapping[str, Any]) -> bool:
    """Whether a list has runs: namespaces and labels choose among the jobs of a cluster."""
    chosen = options["namespace"] or options["selector"]
    return (options["local"] or not chosen) and has_runs()


def has_runs() -> bool:
    """Told without importing what reads them."""
    return os.path.isdir(os.path.join(os.environ.get("TFYARD_HOME") or ".tfyard", "runs"))  # noqa: PTH112, PTH118
