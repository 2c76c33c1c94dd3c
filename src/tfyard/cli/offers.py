"""What a shell offers for the names in a command line: jobs, runs, tasks, namespaces, contexts.

What cannot be asked quickly offers nothing, silently: a message would stand in the middle of what is being typed.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import click

from tfyard.cli import cluster, target
from tfyard.errors import TfyardError
from tfyard.model.names import LATEST

PATIENCE = 2.0
"""Seconds that a server has to answer."""
DEFAULTS: Mapping[str, Any] = {
    "kubeconfig": "",
    "context": "",
    "as_user": "",
    "as_groups": (),
    "namespace": "",
    "local": False,
    "request_timeout": PATIENCE,
}


def jobs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """TFJobs and runs."""
    options = _options(context)
    found = {run.record.name for run in target.all_runs()}
    if incomplete.startswith("@"):
        found.add(LATEST)
    if not options["local"] and cluster.is_configured(options):
        found |= _cluster_jobs(options)
    return _fitting(found, incomplete)


def runs(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return _fitting((run.record.name for run in target.all_runs()), incomplete)


def tasks(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Of the job that is named before them, as the argument `name`."""
    try:
        found = target.find(str(context.params.get("name") or ""), _options(context))
    except TfyardError:
        return []
    if isinstance(found, target.LocalRun):
        return _fitting((task.name for task in found.record.tasks), incomplete)
    specs = (found.found.manifest.get("spec") or {}).get("tfReplicaSpecs") or {}
    counts = {role.lower(): int((spec or {}).get("replicas") or 1) for role, spec in specs.items()}
    return _fitting((f"{role}-{i}" for role, count in counts.items() for i in range(count)), incomplete)


def namespaces(context: click.Context, incomplete: str) -> list[str]:
    from tfyard.kube import requests

    try:
        with cluster.connect({**_options(context), "namespace": ""}) as client:
            items = client.send(requests.get(requests.NAMESPACES.path()))["items"]
    except TfyardError:
        return []
    return _fitting((each["metadata"]["name"] for each in items), incomplete)


def contexts(context: click.Context, incomplete: str) -> list[str]:
    from tfyard.kube import kubeconfig

    try:
        return _fitting(kubeconfig.contexts(os.environ, _options(context)["kubeconfig"]), incomplete)
    except TfyardError:
        return []


def _options(context: click.Context) -> dict[str, Any]:
    """Of what has been typed so far."""
    given = {name: value for name, value in context.params.items() if value is not None}
    return {**DEFAULTS, **given, "request_timeout": PATIENCE}


def _cluster_jobs(options: Mapping[str, Any]) -> set[str]:
    from tfyard.remote import jobs as remote_jobs

    try:
        with cluster.connect(options) as client:
            scope = remote_jobs.Scope("" if options.get("all_namespaces") else client.access.namespace)
            return {each.job.name for each in remote_jobs.summaries(client, scope)}
    except TfyardError:
        return set()


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
