"""`tfyard describe`: prints everything that is known about a job."""

from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, interrupts, offers, target
from tfyard.overview.job_view import lines
from tfyard.overview.wording import harmless
from tfyard.sdk.place import HelperOptions


@click.command("describe")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--spec", is_flag=True, help="Print the job as submitted and as applied, instead.")
@click.option("--code", is_flag=True, help="Print where the job's code is and which files it has, instead.")
@click.option("--helper-image", default="", metavar="IMAGE", help="Image of the pod that looks into a claim.")
@cluster.job_options
def command(name: str, spec: bool, code: bool, helper_image: str, **options: Any) -> None:
    """Describe a job: its state in a sentence, every attempt at its tasks (how long each waited for a node, was
    prepared, and ran, and how it ended), its roles, where its output is, conditions, events, GPU-hours.

    \b
    Examples:
      tfyard describe mnist
      tfyard describe @latest --local
      tfyard describe mnist --spec        # as submitted, and with all defaults
      tfyard describe mnist --code        # where its code is, and which files it has
    """
    place = target.find(name, options)
    if spec:
        click.echo(place.spec(), nl=False)
        return
    if code:
        interrupts.exit_by_exception()  # a pod that looks into a claim is deleted
        shown = place.code(HelperOptions(image=helper_image))
    else:
        shown = [*lines(place.view(), datetime.now(UTC))]
    for line in shown:
        click.echo(harmless(line))
