"""`tfyard resume`: continues a job that was stopped."""

from typing import Any

import click

from tfyard.cli import acting, cluster, output, several


@click.command("resume", cls=acting.ActionCommand)
@several.names_argument
@several.selector_option
@click.option(
    "-q", "--quiet", is_flag=True, help="Print no log lines of a local run; only problems and the summary."
)
@acting.yes_option
@output.text_or_json
@cluster.job_options
def command(names: tuple[str, ...], **options: Any) -> None:
    """Resume jobs that were stopped. Their tasks start again, except those that had finished. A program
    continues from its checkpoints, if it reads them.

    A run on this machine that was stopped, interrupted or killed continues in the foreground, as with `tfyard
    run`: as a new run of the same job, with the same volumes. The old run keeps its logs.

    \b
    Examples:
      tfyard resume mnist
      tfyard resume -l team=vision -n ml
      tfyard resume @latest --local
    """
    acting.change(names, options, lambda place: place.resume())
