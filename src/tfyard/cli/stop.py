"""`tfyard stop`: ends the pods or processes of a job, which can be resumed."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target
from tfyard.cli.waiting import seconds


@click.command("stop", cls=acting.ActionCommand)
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option(
    "--wait", is_flag=True, help="Wait until its pods are deleted; a local run is always waited for."
)
@acting.timeout_option
@acting.yes_option
@cluster.job_options
def command(name: str, wait: bool, timeout: str, yes: bool, **options: Any) -> None:
    """Stop a job: its pods are deleted after their grace period, the job stays; `tfyard resume` continues it.

    On a cluster the job is suspended (if Kueue has admitted it, its Workload is deactivated). A run on this
    machine ends as after Ctrl-C, and is recorded as Stopped.

    \b
    Examples:
      tfyard stop mnist
      tfyard stop mnist --wait --yes
      tfyard stop @latest --local
    """
    intent = target.to_change(name, options).stop()
    acting.carry_out(intent, yes, seconds(timeout) if wait else None)
