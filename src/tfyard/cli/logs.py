"""`tfyard logs`: prints the logs of the tasks of a job."""

import sys
from typing import Any

import click

from tfyard.cli import cluster, job_input, offers, target
from tfyard.errors import Usage

RELATIVE = "relative"


class _LogsCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accepts `-t` alone or `-t relative`; click itself would take the name of the job as its value."""
        for at, word in enumerate(args):
            if word == "--":
                break
            if word in ("-t", "--timestamps"):
                is_relative = args[at + 1 : at + 2] == [RELATIVE]
                args[at : at + 1 + is_relative] = [f"--timestamps={RELATIVE if is_relative else 'utc'}"]
        return super().parse_args(ctx, args)


@click.command("logs", cls=_LogsCommand)
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("words", metavar="[TASK|ROLE]...", nargs=-1, shell_complete=offers.tasks)
@click.option(
    "-f", "--follow", is_flag=True, help="Follow the logs until the job ends; exit with its exit code."
)
@click.option("--tail", type=int, default=-1, metavar="N", help="Print only the last N lines of each task.")
@click.option(
    "--since",
    default="",
    metavar="TIME|restart",
    help="Print only lines since then: 10m, 2h, or restart for the last restart.",
)
@click.option(
    "-t",
    "--timestamps",
    default="",
    metavar="[relative]",
    help="Print when each line was written; relative: since the job began.",
)
@click.option(
    "--grep", default="", metavar="REGEX", help="Print only lines that match; tracebacks stay whole."
)
@click.option(
    "--attempt",
    default="",
    metavar="N",
    help="Print the logs of each task's N-th attempt, as counted by describe.",
)
@click.option(
    "--all-attempts",
    is_flag=True,
    help="Print the logs of every attempt; for those without logs, how they ended.",
)
@click.option("--prefix/--no-prefix", default=True, help="Print the task in front of each line.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the lines."
)
@job_input.mlflow_option("With -f, go on in the run of a cluster's job at this MLflow server.")
@cluster.job_options
def command(name: str, **options: Any) -> None:
    """Print the logs of a job: of all tasks, or of a TASK (worker-0, worker-0..3) or ROLE.

    Lines go to standard output. Messages of tfyard (a task was restarted and why, lines are missing, what the job
    waits for) go to standard error. worker-1#2 is the second attempt at worker-1.

    \b
    Examples:
      tfyard logs mnist                          # of all tasks, as they are now
      tfyard logs -f mnist worker ps-0           # until the job ends
      tfyard logs mnist -t relative --since 10m --grep 'loss|Error'
      tfyard logs mnist worker-1 --all-attempts  # also of attempts whose pods are gone
      tfyard logs -f mnist -o json | jq -r .text
    """
    if options["timestamps"] not in ("", "utc", RELATIVE):
        raise Usage(f"--timestamps {options['timestamps']}: the only value is relative")
    if options["attempt"] and options["all_attempts"]:
        raise Usage("give --attempt or --all-attempts, not both")
    place = target.find(name, options)
    from tfyard.cli.log_printer import PrinterOptions, print_logs  # 30 ms, which an unknown job does not need

    chosen = PrinterOptions(
        **{field: options[field] for field in PrinterOptions.__struct_fields__ if field in options}
    )
    if not options["mlflow"]:
        sys.exit(print_logs(place, chosen))
    if not chosen.follow:
        raise Usage("--mlflow needs -f: only a process that follows the job reports it")
    from tfyard.sdk.reporting import at_mlflow  # 40 ms, which other logs do not need

    with at_mlflow(place, options["mlflow"], target.say) as reported:
        code = print_logs(place, chosen, reported.note)
    sys.exit(code)
