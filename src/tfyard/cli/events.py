"""`tfyard events`: prints the events of a job and of its pods."""

from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from tfyard.cli import cluster, offers, target
from tfyard.cli.output import print_json
from tfyard.overview import table
from tfyard.overview.job_view import EVENT_COLUMNS, event_rows


@click.command("events")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--warnings", is_flag=True, help="Print only warnings.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", help="Format of the output."
)
@cluster.job_options
def command(name: str, warnings: bool, output: str, **options: Any) -> None:
    """Print the events of a job and of its pods, oldest first. A cluster keeps events for an hour; the
    important older ones are in `tfyard describe`.

    \b
    Examples:
      tfyard events mnist
      tfyard events mnist --warnings
      tfyard events @latest -o json
    """
    place = target.find(name, options)
    events = place.events()
    shown = [event for event in events if not warnings or event.event.type == "Warning"]
    if output == "json":
        print_json([{**msgspec.to_builtins(event.event), "about": event.about} for event in shown])
    elif shown:
        rows = [EVENT_COLUMNS, *event_rows(shown, datetime.now(UTC))]
        click.echo("\n".join(table.lines(rows)))
    else:
        target.say("; ".join(filter(None, (f"{name} has no events", place.events_kept))))
