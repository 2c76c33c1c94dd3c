"""`tfyard best`: prints the values of a sweep's best trial, or the job file with them."""

from typing import Any

import click

from tfyard import formats
from tfyard.cli import cluster, offers, target
from tfyard.cli.output import print_json
from tfyard.errors import NotPossible
from tfyard.formats.sweepfile.filling import filled
from tfyard.model.sweep import SweepState, Trial, value_text
from tfyard.overview import sweep_answer, sweep_text, table
from tfyard.overview.wording import harmless
from tfyard.sdk.sweep_place import required_best


@click.command("best")
@click.argument("name", metavar="SWEEP", shell_complete=offers.jobs)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "jobfile", "json"]),
    default="table",
    show_default=True,
    help="Format of the output: the values as a table or as JSON, or the job file with them filled in.",
)
@cluster.job_options
def command(name: str, output: str, **options: Any) -> None:
    """Print the values of the best trial of a sweep, of those that have ended so far.

    \b
    Examples:
      tfyard best cancer-sweep
      tfyard best cancer-sweep -o jobfile > best.yaml
      tfyard best cancer-sweep -o json
      tfyard rerun cancer-sweep --best --set worker=4
    """
    place = target.find(name, options)
    state = place.sweep()
    if state is None:
        raise NotPossible(f"{place.name} is a job: only sweeps have trials")
    trial = required_best(place.name, state)
    if output == "jobfile":
        click.echo(_job_file(place.specs()[0].text, trial), nl=False)
    elif output == "json":
        print_json({"objective": str(state.spec.objective), **sweep_answer.of_trial(state, trial)})
    else:
        click.echo("\n".join(map(harmless, _lines(state, trial))))


def _job_file(spec: str, trial: Trial) -> str:
    (document,) = formats.read(spec.encode())
    return formats.dump(filled(formats.load(document), trial.values), "jobfile").text()


def _lines(state: SweepState, trial: Trial) -> list[str]:
    """All digits of the values, so that they can be copied."""
    at = "" if trial.at is None else f" at step {trial.at:,}"
    rows = [(name, value_text(value)) for name, value in trial.values.items()]
    return [f"{trial.job}: {sweep_text.objective(state, trial)}{at}", *table.lines(rows)]
