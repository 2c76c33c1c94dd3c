"""`tfyard stop`: ends the pods or processes of a job, which can be resumed."""

from typing import Any

import click

from tfyard.cli import acting, cluster, output, several
from tfyard.cli.waiting import seconds


@click.command("stop", cls=acting.ActionCommand)
@several.names_argument
@several.selector_option
@click.option(
    "--wait", is_flag=True, help="Wait until the pods are deleted; a local run is always waited for."
)
@acting.timeout_option
@acting.yes_option
@output.text_or_json
@cluster.job_options
def command(names: tuple[str, ...], wait: bool, timeout: str, **options: Any) -> None:
    """Stop jobs: their pods are deleted after their grace period, the jobs stay; `tfyard resume` continues them.
    Nothing is stopped if one of the names is wrong; -l stops those that have not ended.

    On a cluster the job is suspended (if Kueue has admitted it, its Workload is deactivated). A run on this
    machine ends as after Ctrl-C, and is recorded as Stopped.

    \b
    Examples:
      tfyard stop mnist
      tfyard stop mnist mnist-2 --wait --yes
      tfyard stop -l team=vision -n ml
      tfyard stop @latest --local
    """
    acting.change(names, options, lambda place: place.stop(), timeout=seconds(timeout) if wait else None)
