"""`tfyard rerun`: a new job of the spec of another one."""

import sys
from typing import Any

import click

from tfyard.cli import acting, cluster, offers, target


@click.command("rerun")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--set", "sets", multiple=True, metavar="ROLE=N", help="Set how many tasks a role has.")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable for every task.")
@click.option("--name", "new_name", metavar="NAME", help="Name of the new job; default: JOB-2, JOB-3, ...")
@click.option(
    "-q", "--quiet", is_flag=True, help="Of a local run: no log lines, only problems and the summary."
)
@acting.yes_option
@cluster.job_options
def command(
    name: str, sets: tuple[str, ...], env: tuple[str, ...], new_name: str | None, yes: bool, **options: Any
) -> None:
    """Run a job again, from the beginning and under a new name: a new job of the same spec, without what
    happened to the old one. The old one stays as it is, also if it has not finished. Both use the same claims,
    so a program that finds its checkpoints there continues from them.

    Of a run on this machine, its job runs again as it ran, in the foreground as with `tfyard run`.

    \b
    stop     its pods are deleted, the job stays and can be resumed
    restart  some of its tasks start again, the others run on
    rerun    a new job of the same spec starts, the old one stays
    delete   the job and its pods are deleted, its data stays

    \b
    Examples:
      tfyard rerun mnist
      tfyard rerun mnist --set worker=4 --env LR=0.01 --name mnist-wide
      tfyard rerun @latest --local
    """
    quiet = options.pop("quiet")
    found = target.find(name, options)
    if isinstance(found, target.LocalRun):
        from tfyard.local import actions as local_actions

        run = found.directory
        sys.exit(acting.start(lambda: local_actions.rerun(run, sets, env, new_name), quiet))
    from tfyard.remote import actions, reruns

    with found.client as client:
        intent = actions.rerun(client, found.found, reruns.read(sets, env, new_name))
        acting.carry_out(found, intent, yes)
    click.echo(f"{found.found.title.rpartition('/')[0]}/{intent.made} created")
