"""`tfyard why`: prints the cause of a job's state, the fix, and the evidence."""

import sys
from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.cli.output import print_json
from tfyard.overview.why import explain
from tfyard.overview.why_text import lines


@click.command("why")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Text, or JSON.")
@cluster.job_options
def command(name: str, output: str, **options: Any) -> None:
    """Say why a job waits or has failed: the cause in one sentence, the fix, and the evidence with its age.

    JOB is a TFJob of the cluster, or a run on this machine. Causes are not guessed: if the cause is unknown, the
    answer says so and lists what was checked.

    Exit codes: 0 nothing is wrong; 1 the job has failed; 2 an error, such as an unknown name; 3 the job waits;
    4 the cause is unknown.

    \b
    Examples:
      tfyard why mnist
      tfyard why mnist -n research -o json
      tfyard why --local mnist
      tfyard why @latest
    """
    now = datetime.now(UTC)
    answer = explain(target.find(name, options).evidence(), now)
    if output == "json":
        print_json(answer)
    else:
        click.echo("\n".join(lines(answer, now)))
    sys.exit(answer.code)
