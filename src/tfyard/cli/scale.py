"""`tfyard scale`: more or fewer tasks for a job that runs."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target
from tfyard.job_input.options import replicas


@click.command("scale")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("counts", metavar="ROLE=N...", nargs=-1, required=True)
@acting.yes_option
@cluster.job_options
def command(name: str, counts: tuple[str, ...], yes: bool, **options: Any) -> None:
    """Change how many tasks the roles of a job have. Tasks beyond the new number are stopped, highest index
    first; tasks that run keep the list of peers that they were started with, unless the job has `dynamic:
    true`.

    A job has one chief. A run on this machine cannot be scaled; `tfyard rerun --set` runs its job with other
    numbers.

    \b
    Examples:
      tfyard scale mnist worker=4
      tfyard scale mnist worker=8 ps=2 --yes
    """
    wanted = dict(replicas(text, "scale") for text in counts)
    found = target.find(name, options)
    if isinstance(found, target.LocalRun):
        from tfyard.local.actions import refuse_scale

        raise refuse_scale(found.directory)
    from tfyard.remote import actions

    with found.client as client:
        acting.carry_out(found, actions.scale(client, found.found, wanted), yes)
