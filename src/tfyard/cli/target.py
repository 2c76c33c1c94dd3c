"""Which job a JOB argument means: a TFJob of the cluster, or a run on this machine; `sdk/finding.py` says how.

`--local` means the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster
from tfyard.sdk.finding import ClusterJob, LocalRun, Search, Target, all_runs, has_runs
from tfyard.sdk.finding import find as find_job

if TYPE_CHECKING:
    from tfyard.sdk.place import Place

__all__ = [
    "ClusterJob",
    "LocalRun",
    "Target",
    "all_runs",
    "find",
    "has_runs",
    "place",
    "say",
    "wants_runs",
]


def find(name: str, options: Mapping[str, Any]) -> Target:
    """By the values of `cluster.job_options`."""
    is_meant = not options["local"] and cluster.is_configured(options)
    search = Search(
        connect=(lambda: cluster.connect(options)) if is_meant else None,
        is_local=bool(options["local"]),
        has_namespace=bool(options["namespace"]),
        say=say,
    )
    return find_job(name, search)


def place(found: Target) -> Place:
    """To ask about it."""
    if isinstance(found, LocalRun):
        from tfyard.sdk.on_machine import OnMachine

        return OnMachine(found.directory)
    from tfyard.sdk.on_cluster import OnCluster

    return OnCluster(found.client.access, found.found, found.client)


def say(text: str) -> None:
    """What is no data goes to stderr."""
    click.echo(f"tfyard: {text}", err=True)


def wants_runs(options: Mapping[str, Any]) -> bool:
    """Whether a list has runs: namespaces and labels choose among the jobs of a cluster."""
    chosen = options["namespace"] or options["selector"]
    return (options["local"] or not chosen) and has_runs()
