"""`tfyard rerun`: starts a new job with the spec of another one."""

from typing import Any

import click

from tfyard.cli import acting, cluster, offers, output, target
from tfyard.errors import NotPossible
from tfyard.overview import sweep_text
from tfyard.sdk.place import RerunOptions
from tfyard.sdk.sweep_place import required_best


@click.command("rerun", cls=acting.ActionCommand)
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--set", "sets", multiple=True, metavar="ROLE=N", help="Set the number of tasks of a role.")
@click.option("--env", multiple=True, metavar="K=V", help="Set an environment variable for every task.")
@click.option("--name", "new_name", metavar="NAME", help="Name of the new job; default: JOB-2, JOB-3, ...")
@click.option(
    "--exact",
    "is_exact",
    is_flag=True,
    help="Run the recorded commit and diff, in a git worktree; on a cluster, the code and images that ran.",
)
@click.option("--best", "is_best", is_flag=True, help="Run the best trial of a sweep again.")
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

    The job of a run on this machine runs again in the foreground, as with `tfyard run`, and with the code as it is
    now. With --exact, it is the recorded code. What could not be the same is said before the start.

    \b
    Examples:
      tfyard rerun mnist
      tfyard rerun mnist --set worker=4 --env LR=0.01 --name mnist-wide
      tfyard rerun @latest --local
      tfyard rerun mnist --exact
      tfyard rerun mnist-sweep --best --set worker=4
    """
    quiet = options.pop("quiet")
    changes = RerunOptions(
        sets=sets, env=env, name=new_name, is_exact=options.pop("is_exact"), is_best=options.pop("is_best")
    )
    place = target.to_change(name, options)
    if changes.is_best:
        state = place.sweep()
        if state is None:
            raise NotPossible(f"{place.name} is a job: only sweeps have a best trial")
        target.say(sweep_text.best(state, required_best(place.name, state)))
    acting.carry_out(place.rerun(changes), yes=yes, quiet=quiet, form=options["output"])
