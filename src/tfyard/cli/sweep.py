"""`tfyard sweep`: runs a job many times, with other values, and finds the best."""

import sys
from typing import Any

import click

from tfyard.cli import job_input
from tfyard.cli.screen import sweep as screen
from tfyard.errors import Usage
from tfyard.job_input import files
from tfyard.job_input.files import SweepGiven
from tfyard.job_input.load import from_documents
from tfyard.job_input.sweeps import GivenSweep, SweepOptions, of_file, of_options
from tfyard.local.settings import RunOptions

_OWN = tuple(SweepOptions.__struct_fields__)
_HELP = {
    "name": "Name of the sweep; default: that of the job, and -sweep.",
    "deadline": "Time for the whole sweep: 90m, 6h.",
}


@click.command("sweep", cls=job_input.JobCommand)
@job_input.options
@click.option(
    "--over",
    multiple=True,
    metavar="NAME=VALUES",
    help="A parameter: lr=1e-4..1e-1:log, layers=1..4, batch=32,64,128. `{lr}` in the job stands for its value.",
)
@click.option(
    "--objective", default="", metavar="METRIC", help="Metric to optimize: 'max auc', 'min best loss'."
)
@click.option("--trials", type=click.IntRange(1), help="Number of trials; default: every combination, or 20.")
@click.option(
    "--parallel",
    type=click.IntRange(1),
    help="Number of trials at once; default: as many as fit this machine.",
)
@click.option(
    "--sampler",
    type=click.Choice(["grid", "random", "tpe"]),
    help="How values are chosen; default: tpe if there is a range, else grid.",
)
@click.option(
    "--prune",
    type=click.Choice(["none", "median", "asha"]),
    help="Stop trials that are worse than the others at the same step.",
)
@click.option("--seed", type=int, help="Seed of the choice: the same one chooses the same values.")
@click.option(
    "--retry-trials", type=click.IntRange(0), metavar="N", help="How often a failed trial is tried again."
)
@click.option("--python", metavar="PATH", help="The tasks' Python interpreter.")
@click.option("--mount", multiple=True, metavar="NAME=DIR", help="Use this directory for the volume NAME.")
@click.option("--share-gpus", is_flag=True, help="Let tasks share GPUs if they request more than there are.")
@click.option(
    "--metric", metavar="REGEX", help="Regex for metrics; named groups: step, total, epoch, epochs, others."
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would be done, and the processes of the first trial."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the result.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
def command(dry_run: bool, quiet: bool, output: str, **options: Any) -> None:
    """Run a job many times on this machine, each time with other values, and say which were best.

    FILE is a sweep file, or a job file, TFJob or Python script with --over and --objective. `{lr}` in the
    commands, arguments and env of the job stands for the value of the parameter lr; a parameter that the job does
    not name is a variable of its name in capitals. Each trial is a run like any other. Ctrl-C stops the sweep;
    `tfyard resume` goes on with it.

    \b
    Examples:
      tfyard sweep sweep.yaml
      tfyard sweep job.yaml --over lr=1e-4..1e-1:log --objective 'max auc' --trials 24 --prune median
      tfyard sweep train.py --over batch=32,64 --objective 'min loss' -- --batch {batch}

    Exits with 0 if a trial has succeeded, else with 1; 130 after Ctrl-C.
    """
    own = SweepOptions(**{name: options.pop(name) for name in _OWN})
    asked = RunOptions(**job_input.with_target({**options, "name": None, "deadline": None}))
    sweep = given(asked, own)
    if dry_run:
        screen.rehearse(sweep, asked, output)
    else:
        sys.exit(screen.drive(sweep, asked, output, quiet=quiet))


for parameter in command.params:
    if isinstance(parameter, click.Option) and parameter.name in _HELP:
        parameter.help = _HELP[parameter.name]


def given(asked: RunOptions, own: SweepOptions) -> GivenSweep:
    if not asked.is_script:
        try:
            from_documents(files.read_documents(asked.target), asked.target, uses_images=False)
        except SweepGiven as sweep:
            return of_file(sweep, own)
    if not own.over or not own.objective:
        missing = "--over" if not own.over else "--objective"
        raise Usage(f"{missing} must be given, or a sweep file: `tfyard init --sweep` writes one")
    return of_options(asked.target, own)
