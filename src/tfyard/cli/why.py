"""`tfyard why`: the cause of a job's state, the fix, and the evidence."""

import sys
from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, offers, target


@click.command("why")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Text, or JSON.")
@cluster.job_options
def command(name: str, output: str, **options: Any) -> None:
    """Say why a job waits or has failed: the cause in one sentence, the fix, and the evidence with its age.

    JOB is a TFJob of the cluster, or a run on this machine. Nothing is guessed: if the cause is not known, that is
    the answer, with what was looked at.

    Exit codes: 0 nothing is wrong; 1 it has failed; 2 an error, such as an unknown name; 3 it waits; 4 the
    cause is not known.

    \b
    Examples:
      tfyard why mnist
      tfyard why mnist -n research -o json
      tfyard why --local mnist
      tfyard why @latest
    """
    from tfyard.overview.why import explain

    now = datetime.now(UTC)
    answer = explain(target.place(target.find(name, options)).evidence(), now)
    if output == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())
    else:
        from tfyard.overview.why_text import lines

        click.echo("\n".join(lines(answer, now)))
    sys.exit(answer.code)
