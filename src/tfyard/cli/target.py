"""Finds the jobs of a command: the job of a JOB argument (by the rules of `sdk/finding.py`), or all of them.

With `--local`, only runs on this machine are considered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster
from tfyard.overview.wording import harmless
from tfyard.sdk import finding
from tfyard.sdk.jobs_on_cluster import JobsOnCluster
from tfyard.sdk.on_machine import has_runs, has_sweeps
from tfyard.sdk.runs_on_machine import RunsOnMachine

if TYPE_CHECKING:
    from tfyard.sdk.place import Jobs, Place


def say(text: str) -> None:
    """Print a message to standard error: standard output is for data."""
    click.echo(f"tfyard: {harmless(text)}", err=True)


def to_change(name: str, options: Mapping[str, Any]) -> Place:
    """The job of exactly this name."""
    return find(name, options, whole=True)


def find(
    name: str, options: Mapping[str, Any], *, whole: bool = False, say: Callable[[str], None] = say
) -> Place:
    """The job of this name, by the values of `cluster.job_options`. `whole`: a beginning of the name does not do,
    because the job will be changed."""
    search = finding.Search(
        connect=(lambda: cluster.connect(options)) if asks_cluster(options) else None,
        is_local=bool(options["local"]),
        is_whole=whole,
        has_namespace=bool(options["namespace"]),
        say=say,
    )
    return finding.find(name, search)


def lists(options: Mapping[str, Any]) -> list[Jobs]:
    """The TFJobs of the cluster, if there is one, and the runs of this folder, if there are some. Namespaces and
    labels choose among TFJobs only."""
    jobs: list[Jobs] = [of_cluster(options)] if asks_cluster(options) else []
    is_chosen = options["namespace"] or options.get("selector")
    if (options["local"] or not is_chosen) and (has_runs() or has_sweeps()):
        jobs.append(runs_here())
    return jobs


def runs_here() -> Jobs:
    return RunsOnMachine(say)


def of_cluster(options: Mapping[str, Any]) -> Jobs:
    """The TFJobs that -n, -A and -l choose."""
    return JobsOnCluster(
        lambda: cluster.connect(options),
        say,
        selector=options.get("selector") or "",
        all_namespaces=bool(options.get("all_namespaces")),
    )


def asks_cluster(options: Mapping[str, Any]) -> bool:
    """Whether jobs of a cluster are meant."""
    return not options["local"] and cluster.is_configured(options)
