"""`tfyard run`: runs a job on this machine, as real processes."""

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tfyard import formats
from tfyard.cli import job_input, problems
from tfyard.cli.screen import processes
from tfyard.errors import Usage
from tfyard.formats.writing import SCHEMA_LINE
from tfyard.job_input import files, script
from tfyard.job_input.files import SweepGiven
from tfyard.local.settings import RunOptions
from tfyard.node import launch

if TYPE_CHECKING:
    from tfyard.local.prepared import PreparedRun


@click.command("run", cls=job_input.JobCommand)
@job_input.options
@click.option(
    "--python", metavar="PATH", help="The tasks' Python interpreter; default: the active environment's."
)
@click.option("--mount", multiple=True, metavar="NAME=DIR", help="Use this directory for the volume NAME.")
@click.option("--save", metavar="FILE", help="Write a job file that does the same, and run it.")
@click.option("--dry-run", is_flag=True, help="Print every process and its environment; start nothing.")
@click.option("--gpus", is_flag=True, help="Warn if there is no GPU; GPUs are always distributed.")
@click.option("--share-gpus", is_flag=True, help="Let tasks share GPUs if they request more than there are.")
@click.option(
    "--tensorboard",
    is_flag=False,
    flag_value="",
    metavar="[DIR]",
    help="Start TensorBoard on this directory; default: the one that the job names.",
)
@click.option("--notebook", is_flag=True, help="Start the Jupyter of a config with resources, too.")
@click.option(
    "--kill",
    multiple=True,
    metavar="TASK@TIME[:now]",
    help="Evict a task after that time, as a preemption does: with SIGTERM, or SIGKILL for :now.",
)
@click.option(
    "--attach", multiple=True, metavar="TASK", help="Start this task yourself, for example in a debugger."
)
@click.option(
    "--metric", metavar="REGEX", help="Regex for metrics; named groups: step, total, epoch, epochs, others."
)
@click.option("-q", "--quiet", is_flag=True, help="Print no log lines; only problems and the summary.")
@click.option("-v", "--verbose", is_flag=True, help="Show the messages of TensorFlow's runtime, too.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Format of the output: lines, or an event as JSON per line.",
)
def command(dry_run: bool, quiet: bool, verbose: bool, output: str, **options: Any) -> None:
    """Run a job on this machine: every task is a real process with a real TF_CONFIG; no cluster, no containers.
    Workloads of Kubernetes run without changes, too: a Job, or a Deployment or StatefulSet for each task.

    FILE is a tfyard job file, a TFJob of any version, or a Python script. For a script or module, options set
    the roles, and the arguments after `--` are passed to it. For a job they are the command of tasks that have
    none, because their image has it.

    \b
    Examples:
      tfyard run job.yaml
      tfyard run train.py --worker 2 --ps 1 -- --steps 100
      tfyard run tfjob.yaml -- python train.py --steps 100

    The task of a job with a single task has the standard input: it can be typed or piped.

    Exits with 0 if the job succeeded, else with the failed task's code, 124 if it missed its deadline,
    130 after Ctrl-C, which a program gets as under `python`: by SIGINT, or SIGTERM if it catches that.

    A config with resources runs, too: its tasks are TensorFlow servers until Ctrl-C, and --notebook starts its
    Jupyter.
    """
    if not dry_run:
        launch.ahead()
    from tfyard.local.prepare import prepare  # 75 ms, in which the supervisor gets ready

    asked = RunOptions(**_with_target(options))
    try:
        prepared = prepare(asked)
    except SweepGiven as sweep:
        sys.exit(_sweep(sweep, asked, output, quiet=quiet, dry_run=dry_run))
    problems.report(prepared.warnings, prepared.text)
    for sentence in prepared.changes:
        click.echo(f"tfyard: changed: {problems.escaped(sentence)}", err=True)
    if prepared.settings.save is not None:
        _save(prepared.settings.save, prepared.settings, dry_run=dry_run)
    if dry_run:
        _print_commands(prepared, output)
    else:
        from tfyard.cli.screen.follow import follow  # 25 ms, which a dry run does not need

        sys.exit(follow(prepared, output, quiet=quiet, verbose=verbose))


_OF_ONE_JOB = ("name", "save", "tensorboard", "notebook", "kill", "attach")


def _sweep(sweep: SweepGiven, asked: RunOptions, output: str, *, quiet: bool, dry_run: bool) -> int:
    # 50 ms, which a job does not need.
    from tfyard.cli.screen.sweep import drive, rehearse
    from tfyard.job_input.sweeps import of_file

    if wrong := next((name for name in _OF_ONE_JOB if getattr(asked, name) not in (None, False, ())), None):
        raise Usage(f"--{wrong} is for one job; `tfyard sweep` has the options of sweep files")
    if dry_run:
        rehearse(of_file(sweep), asked, output)
        return 0
    return drive(of_file(sweep), asked, output, quiet=quiet)


def _with_target(options: dict[str, Any]) -> dict[str, Any]:
    """The options with their target. DIR of --tensorboard is optional, so the word after it may be the FILE."""
    if options["target"] is None and options["module"] is None and options["tensorboard"]:
        return {**options, "target": options["tensorboard"], "tensorboard": ""}
    return job_input.with_target(options)


def _save(name: str, settings: RunOptions, *, dry_run: bool) -> None:
    """Write the job file that does the same as the script with its options."""
    if dry_run:
        click.echo(f"--save: a dry run does not write {name}", err=True)
    elif settings.job_file.exists():
        raise Usage(f"--save: {name} exists; choose another name")
    else:
        from tfyard.cli import editor  # 5 ms with the words of sweeps

        words = script.portable_words(settings, settings.job_file.parent)
        files.write_text(name, SCHEMA_LINE + formats.to_yaml(words))
        editor.write_schema(name)


def _print_commands(prepared: "PreparedRun", output: str) -> None:
    """Print the processes that would be started: directory, own environment, mounts, command."""
    from tfyard.local.commands import planned  # imports what `prepare` does

    started = planned(prepared)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(started)).decode())
        return
    click.echo(f"python is {prepared.python}")
    processes.print_text(started)
