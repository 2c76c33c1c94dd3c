"""`tfyard scale`: changes the number of tasks of a running job."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, output, target
from tfyard.job_input.options import replicas


@click.command("scale")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("counts", metavar="ROLE=N...", nargs=-1, required=True)
@acting.yes_option
@output.text_or_json
@cluster.job_options
def command(name: str, counts: tuple[str, ...], yes: bool, **options: Any) -> None:
    """Change the number of tasks of roles of a job. Tasks beyond the new number are stopped, highest index first;
    running tasks keep the list of peers that they were started with, unless the job has `dynamic: true`.

    A job has one chief. A run on this machine cannot be scaled; `tfyard rerun --set` runs its job with other
    numbers.

    \b
    Examples:
      tfyard scale mnist worker=4
      tfyard scale mnist worker=8 ps=2 --yes
    """
    replicas_by_role = dict(replicas(text, "scale") for text in counts)
    acting.carry_out(target.to_change(name, options).scale(replicas_by_role), yes=yes, form=options["output"])
