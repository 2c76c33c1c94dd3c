"""`tfyard rerun`: starts a new job with the spec of another one."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, output, target
from tfyard.sdk.place import RerunOptions


@click.command("rerun", cls=acting.ActionCommand)
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--set", "sets", multiple=True, metavar="ROLE=N", help="Set the number of tasks of a role.")
@click.option("--env", multiple=True, metavar="K=V", help="Set an environment variable for every task.")
@click.option("--name", "new_name", metavar="NAME", help="Name of the new job; default: JOB-2, JOB-3, ...")
@click.option(
    "-q", "--quiet", is_flag=True, help="Print no log lines of a local run; only problems and the summary."
)
@acting.yes_option
@output.text_or_json
@cluster.job_options
def command(
    name: str, sets: tuple[str, ...], env: tuple[str, ...], new_name: str | None, yes: bool, **options: Any
) -> None:
    """Run a job again from the beginning, as a new job with the same spec and another name. The old job stays as
    it is, also if it has not finished. Both use the same claims, so a program that finds its checkpoints there
    continues from them.

    The job of a run on this machine runs again in the foreground, as with `tfyard run`.

    \b
    Examples:
      tfyard rerun mnist
      tfyard rerun mnist --set worker=4 --env LR=0.01 --name mnist-wide
      tfyard rerun @latest --local
    """
    quiet = options.pop("quiet")
    changes = RerunOptions(sets=sets, env=env, name=new_name)
    acting.carry_out(
        target.to_change(name, options).rerun(changes), yes=yes, quiet=quiet, form=options["output"]
    )
