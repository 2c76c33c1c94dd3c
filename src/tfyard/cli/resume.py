"""`tfyard resume`: continues a job that was stopped."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target


@click.command("resume", cls=acting.ActionCommand)
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option(
    "-q", "--quiet", is_flag=True, help="Print no log lines of a local run; only problems and the summary."
)
@acting.yes_option
@cluster.job_options
def command(name: str, quiet: bool, yes: bool, **options: Any) -> None:
    """Resume a job that was stopped. Its tasks start again, except those that had finished. The program
    continues from its checkpoints, if it reads them.

    A run on this machine that was stopped, interrupted or killed continues in the foreground, as with `tfyard
    run`: as a new run of the same job, with the same volumes. The old run keeps its logs.

    \b
    Examples:
      tfyard resume mnist
      tfyard resume @latest --local
    """
    acting.carry_out(target.to_change(name, options).resume(), yes, quiet=quiet)
