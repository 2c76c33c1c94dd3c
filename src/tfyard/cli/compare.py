"""`tfyard compare`: jobs side by side, here and on a cluster."""

import sys
from pathlib import Path
from typing import Any

import click

from tfyard.cli import cluster, offers, several, target
from tfyard.cli.output import coloured, print_json
from tfyard.cli.screen.rows import columns
from tfyard.cli.screen.summary import plot
from tfyard.errors import Usage
from tfyard.overview import comparison as sides
from tfyard.overview import comparison_text
from tfyard.overview.comparison import Comparison
from tfyard.overview.wording import harmless
from tfyard.sdk import comparing


@click.command("compare")
@click.argument("names", metavar="JOB...", nargs=-1, required=True, shell_complete=offers.jobs)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "csv", "md"]),
    default="table",
    show_default=True,
    help="Format of the output: a table with curves below it, JSON with the whole records, CSV, or Markdown.",
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(dir_okay=False),
    metavar="FILE.svg",
    help="Write a picture of all curves.",
)
@click.option("--diff", "is_diff", is_flag=True, help="Print the difference of the code, as git does.")
@cluster.job_options
def command(names: tuple[str, ...], output: str, picture: str | None, is_diff: bool, **options: Any) -> None:
    """Compare jobs: what differs (parameters, code, packages, image, roles), their metrics, times and costs. Jobs
    of a cluster and runs on this machine may be mixed; the first one is the baseline. A single job is compared
    with the one before it of the same name.

    \b
    Examples:
      tfyard compare mnist                      # with the run before it
      tfyard compare mnist-20261118-101500 mnist-20261118-113000
      tfyard compare run/mnist tfjob.kubeflow.org/mnist
      tfyard compare mnist mnist-2 mnist-3 -o csv > mnist.csv
      tfyard compare mnist mnist-2 --plot mnist.svg
      tfyard compare mnist mnist-2 --diff
    """
    if picture and not picture.endswith(".svg"):
        raise Usage(f"--plot {picture}: it writes SVG, so the name must end with .svg")
    places = several.each(lambda name: target.find(name, options), dict.fromkeys(names))
    compared = comparing.compare(places)
    if is_diff:
        _print_diff(compared)
    elif picture:
        Path(picture).write_text(comparing.picture(compared), encoding="utf-8")
        target.say(f"wrote {picture}")
    else:
        _print(compared, output)


def _print(compared: Comparison, output: str) -> None:
    if output == "json":
        print_json(comparison_text.plain(compared))
    elif output == "csv":
        click.echo(comparison_text.csv(compared).encode(), nl=False)
    elif output == "md":
        click.echo(comparison_text.markdown(compared), nl=False)
    else:
        click.echo("\n".join(comparison_text.lines(compared, columns())))
        _print_curves(compared)


def _print_curves(compared: Comparison) -> None:
    """The loss of each job, or else its first metric."""
    for job in compared.jobs:
        if curve := sides.progress(job).loss():
            click.echo(f"\n{job.label}")
            for line in plot(curve):
                click.echo(line)


def _print_diff(compared: Comparison) -> None:
    for job in compared.jobs:
        for text in job.record.origin.code.missing:
            target.say(f"{job.label}: not in the diff: {text}")
    text = comparing.code_difference(compared)
    if not text:
        target.say("the code is the same")
    elif sys.stdout.isatty():
        click.echo("\n".join(coloured(harmless(line)) for line in text.rstrip("\n").split("\n")))
    else:
        click.echo(text, nl=False)  # as it is: `git apply` may read it
