"""`tfyard delete`: deletes jobs and their pods; their data stays."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target
from tfyard.cli.waiting import seconds
from tfyard.errors import TfyardError
from tfyard.sdk.place import Place


@click.command("delete", cls=acting.ActionCommand)
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=offers.jobs)
@click.option("-l", "--selector", default="", metavar="K=V", help="Delete all TFJobs with these labels.")
@click.option("--wait", is_flag=True, help="Wait until they and their pods are deleted.")
@acting.timeout_option
@acting.yes_option
@cluster.job_options
def command(names: tuple[str, ...], selector: str, wait: bool, timeout: str, **options: Any) -> None:
    """Delete jobs with their pods and logs. Claims and their data stay, unless a job is their owner. Of a run on
    this machine, the record and the logs are removed; its volumes stay. A run that still runs is not deleted.

    Nothing is deleted if one of the names is wrong.

    \b
    Examples:
      tfyard delete mnist
      tfyard delete mnist mnist-2 --yes --wait
      tfyard delete -l team=vision -n ml
      tfyard delete @latest --local
    """
    yes, options["selector"] = bool(options.pop("yes")), selector
    if bool(names) == bool(selector):
        raise click.UsageError("Name jobs, or choose them by -l.")
    intents = [place.delete() for place in (_selected(options) if selector else _named(names, options))]
    for intent in intents:
        acting.announce(intent)
    acting.confirm(yes)
    deleted = [(intent, acting.perform(intent)) for intent in intents]
    for intent, done in deleted:
        acting.wait(intent, done, seconds(timeout) if wait else None)


def _selected(options: Mapping[str, Any]) -> list[Place]:
    jobs = target.of_cluster(options)
    if places := jobs.places():
        return places
    raise TfyardError(jobs.nothing())


def _named(names: tuple[str, ...], options: Mapping[str, Any]) -> list[Place]:
    """Find the jobs with these names; all problems are reported at once."""
    places, problems = list[Place](), list[TfyardError]()
    for name in dict.fromkeys(names):
        try:
            places.append(target.to_change(name, options))
        except TfyardError as problem:
            problems.append(problem)
    if problems:
        for text in map(str, problems):
            target.say(text)
        sys.exit(max(failure.exit_code for failure in problems))
    return places
