"""`tfyard delete`: deletes jobs and their pods; their data stays."""

from typing import Any

import click

from tfyard.cli import acting, cluster, output, several
from tfyard.cli.waiting import seconds


@click.command("delete", cls=acting.ActionCommand)
@several.names_argument
@several.selector_option
@click.option("--wait", is_flag=True, help="Wait until the jobs and their pods are deleted.")
@acting.timeout_option
@acting.yes_option
@output.text_or_json
@cluster.job_options
def command(names: tuple[str, ...], wait: bool, timeout: str, **options: Any) -> None:
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
    wait_for = seconds(timeout) if wait else None
    acting.change(names, options, lambda place: place.delete(), timeout=wait_for, running=False)
