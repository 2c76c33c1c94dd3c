"""`tfyard run`: the job on this machine, as real processes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import job_input
from tfyard.errors import Usage

if TYPE_CHECKING:
    from tfyard.local.commands import Planned
    from tfyard.local.prepared import Prepared
    from tfyard.local.settings import Settings


@click.command("run", cls=job_input.JobCommand)
@job_input.options
@click.option(
    "--python", metavar="PATH", help="The tasks' Python interpreter; default: the active environment's."
)
@click.option("--mount", multiple=True, metavar="NAME=DIR", help="Use this directory for that volume.")
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
    help="Evict a task after that time, as a preemption does: by SIGTERM; with :now, by SIGKILL.",
)
@click.option(
    "--attach", multiple=True, metavar="TASK", help="Start this task yourself, for example in a debugger."
)
@click.option(
    "--metric", metavar="REGEX", help="Regex for metrics; named groups: step, total, epoch, epochs, others."
)
@click.option("-q", "--quiet", is_flag=True, help="No log lines; only problems and the summary.")
@click.option("-v", "--verbose", is_flag=True, help="Show the messages of TensorFlow's runtime, too.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Lines, or JSON events."
)
def command(dry_run: bool, quiet: bool, verbose: bool, output: str, **options: Any) -> None:
    """Run a job on this machine: every task is a real process with a real TF_CONFIG; no cluster, no containers.
    What Kubernetes users have runs as it is, too: a Job, or a Deployment or StatefulSet for each task.

    FILE is a tfyard job file, a TFJob of any version, or a Python script. For a script or module, options set
    the roles, and what follows `--` goes to it. For a job it is the command of the tasks that have none, because
    their image knows it.

    \b
    Examples:
      tfyard run job.yaml
      tfyard run train.py --worker 2 --ps 1 -- --steps 100
      tfyard run tfjob.yaml -- python train.py --steps 100

    Exits with 0 if the job succeeded, else with the failed task's code, 124 if it missed its deadline,
    130 after Ctrl-C.

    A config with resources runs, too: its tasks are TensorFlow servers until Ctrl-C, and --notebook starts its
    Jupyter.
    """
    if not dry_run:
        from tfyard.node import launch

        launch.ahead()
    _import_dependencies()
    from tfyard.cli import problems
    from tfyard.local.prepare import prepare
    from tfyard.local.settings import Settings

    prepared = prepare(Settings(**_with_target(options)))
    problems.report(prepared.warnings, prepared.text)
    for sentence in prepared.changes:
        click.echo(f"tfyard: changed: {problems.escaped(sentence)}", err=True)
    if prepared.settings.save is not None:
        _save(prepared.settings.save, prepared.settings, dry_run=dry_run)
    if dry_run:
        _print_commands(prepared, output)
    else:
        from tfyard.cli.screen.follow import follow

        sys.exit(follow(prepared, output, quiet=quiet, verbose=verbose))


def _import_dependencies() -> None:
    """Without what they use if it is installed, but no run needs: TLS in asyncio, and types of later Pythons."""
    with _hidden("ssl"):
        import asyncio  # noqa: F401
    with _hidden("typing_extensions"):
        import msgspec  # noqa: F401


@contextmanager
def _hidden(module: str) -> Iterator[None]:
    """As if it were not installed."""
    before = sys.modules.get(module)
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
        if before is not None:
            sys.modules[module] = before


def _with_target(options: dict[str, Any]) -> dict[str, Any]:
    """DIR of --tensorboard may be left out, so what follows it may be the FILE."""
    if options["target"] is None and options["module"] is None and options["tensorboard"]:
        return {**options, "target": options["tensorboard"], "tensorboard": ""}
    return job_input.with_target(options)


def _save(name: str, settings: "Settings", *, dry_run: bool) -> None:
    """Write the job file that does the same as the script with its options."""
    from tfyard import files, formats
    from tfyard.cli import editor
    from tfyard.formats.writing import SCHEMA_LINE
    from tfyard.job_input import script

    if dry_run:
        click.echo(f"--save: a dry run does not write {name}", err=True)
    elif settings.job_file.exists():
        raise Usage(f"--save: {name} exists; choose another name")
    else:
        words = script.portable_words(settings, settings.job_file.parent)
        files.write_text(name, SCHEMA_LINE + formats.to_yaml(words))
        editor.write_schema(name)


def _print_commands(prepared: "Prepared", output: str) -> None:
    """What would be started: directory, environment of its own, mounts, command."""
    from tfyard.local.commands import planned

    processes = planned(prepared)
    if output == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(processes)).decode())
        return
    click.echo(f"python is {prepared.python}")
    for process in processes:
        _print_process(process)


def _print_process(process: "Planned") -> None:
    from shlex import join, quote

    from tfyard.model import TENSORFLOW_CONTAINER

    kind = "init container" if process.is_init else "container"
    is_main = process.container == TENSORFLOW_CONTAINER
    click.echo(f"{process.task}:" if is_main else f"{process.task}, {kind} {process.container}:")
    for path, directory in process.mounts.items():
        click.echo(f"  # {path} is {directory}")
    click.echo(f"  cd {quote(process.directory)}")
    for name, value in process.env.items():
        click.echo(f"  {name}={quote(value)}")
    click.echo(f"  {join(process.command)}")
