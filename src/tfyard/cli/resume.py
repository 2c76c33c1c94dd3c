"""`tfyard resume`: a job that was stopped goes on."""

import sys
from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target


@click.command("resume")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option(
    "-q", "--quiet", is_flag=True, help="Of a local run: no log lines, only problems and the summary."
)
@acting.yes_option
@cluster.job_options
def command(name: str, quiet: bool, yes: bool, **options: Any) -> None:
    """Resume a job that was stopped. Its tasks start again, except those that had finished; where they
    continue is up to the program, which finds its checkpoints where it left them.

    A run on this machine that was stopped, interrupted or killed continues in the foreground, as with `tfyard
    run`: as a new run, with the same job and the same volumes. The old one keeps its logs.

    \b
    stop     its pods are deleted, the job stays and can be resumed
    restart  some of its tasks start again, the others run on
    rerun    a new job of the same spec starts, the old one stays
    delete   the job and its pods are deleted, its data stays

    \b
    Examples:
      tfyard resume mnist
      tfyard resume @latest --local
    """
    found = target.find(name, options)
    if isinstance(found, target.LocalRun):
        from tfyard.local import actions as local_actions

        sys.exit(acting.start(lambda: local_actions.resume(found.directory), quiet))
    from tfyard.remote import actions

    with found.client as client:
        acting.carry_out(found, actions.resume(client, found.found), yes)
