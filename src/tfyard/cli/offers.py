"""Completion of names in a shell: jobs, runs and tasks. Namespaces and contexts are completed by `cluster.py`.

Errors and slow servers lead to no completions, without a message: it would appear in the line being typed.
"""

from collections.abc import Iterable
from contextlib import suppress

import click

from tfyard.cli import cluster, target
from tfyard.errors import TfyardError
from tfyard.model.names import LATEST
from tfyard.model.sweep import SweepState, trial_name


def jobs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of TFJobs and runs."""
    names = {LATEST} if incomplete.startswith("@") else set()
    for listed in target.lists(cluster.typed_options(context)):
        with suppress(TfyardError):
            for row in listed.rows():
                names |= {row.job.name, *(_trials(row.sweep, incomplete) if row.sweep else ())}
    return _fitting(names, incomplete)


def _trials(sweep: SweepState, incomplete: str) -> set[str]:
    """The trials of a sweep, once its own name is typed: there may be hundreds."""
    name = sweep.spec.name
    return {trial_name(name, trial.number) for trial in sweep.trials if incomplete.startswith(f"{name}-")}


def runs(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return _fitting((row.job.name for row in target.runs_here().rows()), incomplete)


def tasks(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of the tasks of the job that the argument `name` before them means."""
    try:
        name, options = str(context.params.get("name") or ""), cluster.typed_options(context)
        place = target.find(name, options, say=lambda _text: None)
        return _fitting(place.tasks(), incomplete)
    except TfyardError:
        return []


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
