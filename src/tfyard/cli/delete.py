"""`tfyard delete`: a job and its pods go, its data stays."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target
from tfyard.errors import TfyardError, Usage


@click.command("delete")
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=offers.jobs)
@click.option("-l", "--selector", default="", metavar="K=V", help="Delete all TFJobs with these labels.")
@click.option("--wait", is_flag=True, help="Wait until they and their pods are deleted.")
@acting.timeout_option
@acting.yes_option
@cluster.job_options
def command(names: tuple[str, ...], selector: str, wait: bool, timeout: str, **options: Any) -> None:
    """Delete jobs: with their pods and the logs of those. Claims and what is in them stay, unless a job is
    their owner. Of a run on this machine, its record and its logs are removed; volumes stay, and a run that
    still runs is refused.

    Nothing is deleted if one of the names is wrong.

    \b
    stop     its pods are deleted, the job stays and can be resumed
    restart  some of its tasks start again, the others run on
    rerun    a new job of the same spec starts, the old one stays
    delete   the job and its pods are deleted, its data stays

    \b
    Examples:
      tfyard delete mnist
      tfyard delete mnist mnist-2 --yes --wait
      tfyard delete -l team=vision -n ml
      tfyard delete @latest --local
    """
    yes = bool(options.pop("yes"))
    if bool(names) == bool(selector):
        raise click.UsageError("Name jobs, or choose them by -l.")
    found = _selected(selector, options) if selector else _named(names, options)
    runs = [each for each in found if isinstance(each, target.LocalRun)]
    _require_ended(runs)
    jobs = [_Deletion(each) for each in found if isinstance(each, target.ClusterJob)]
    for run in runs:
        acting.tell(f"delete the run {run.record.name}", ["its record and its logs"], ["its volumes"])
    for job in jobs:
        acting.announce(job.intent)
    acting.confirm(yes)
    _delete(runs, jobs)
    for job in jobs if wait else ():
        acting.wait(job.of, job.intent, timeout)


class _Deletion:
    def __init__(self, job: target.ClusterJob) -> None:
        from tfyard.remote import actions

        self.of, self.intent = job, actions.delete(job.client, job.found)


def _selected(selector: str, options: Mapping[str, Any]) -> list[target.Target]:
    from tfyard.remote import actions

    client = cluster.connect(options)
    return [
        target.ClusterJob(client, job) for job in actions.selected(client, client.access.namespace, selector)
    ]


def _named(names: tuple[str, ...], options: Mapping[str, Any]) -> list[target.Target]:
    """All that is wrong is said at once."""
    found, problems = list[target.Target](), list[TfyardError]()
    for name in dict.fromkeys(names):
        try:
            found.append(target.find(name, options))
        except TfyardError as problem:
            problems.append(problem)
    if problems:
        for each in problems:
            target.say(str(each))
        sys.exit(max(each.exit_code for each in problems))
    return found


def _require_ended(runs: list[target.LocalRun]) -> None:
    for run in runs:
        if run.record.ended is None:
            raise Usage(f"{run.record.name} is still running; `tfyard stop {run.record.name}` stops it")


def _delete(runs: list[target.LocalRun], jobs: list[_Deletion]) -> None:
    for run in runs:
        from tfyard.local.runs import remove

        click.echo(f"{remove(run.record.name)} deleted")
    for job in jobs:
        from tfyard.remote import actions

        actions.perform(job.of.client, job.intent)
        click.echo(f"{job.of.found.title} deleted")
