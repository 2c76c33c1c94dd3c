"""`tfyard events`: of a job and of its pods."""

from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.overview import table
from tfyard.overview.job_view import EVENT_COLUMNS, event_rows


@click.command("events")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--warnings", is_flag=True, help="Only warnings.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", help="A table, or JSON."
)
@cluster.job_options
def command(name: str, warnings: bool, output: str, **options: Any) -> None:
    """Print the events of a job and of its pods, oldest first. A cluster keeps events for an hour; what matters of
    older ones is in `tfyard describe`.

    \b
    Examples:
      tfyard events mnist
      tfyard events mnist --warnings
      tfyard events @latest -o json
    """
    found = target.place(target.find(name, options)).events()
    told = [each for each in found if not warnings or each.event.type == "Warning"]
    if output == "json":
        import msgspec

        plain = [{**msgspec.to_builtins(each.event), "about": each.about} for each in told]
        click.echo(msgspec.json.format(msgspec.json.encode(plain)).decode())
    elif told:
        rows = [EVENT_COLUMNS, *event_rows(told, datetime.now(UTC))]
        click.echo("\n".join(table.lines(rows)))
    else:
        target.say(f"{name} has no events; a cluster keeps them for an hour")
