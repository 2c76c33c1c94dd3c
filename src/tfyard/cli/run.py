"""`tfyard run`: the job on this machine, as real processes."""

import sys
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click

from tfyard.errors import TfyardError, Usage

if TYPE_CHECKING:
    from tfyard.local.prepared import Prepared
    from tfyard.local.settings import Settings


class _Run(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [*args]  # the parser empties its list
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            script = next((word for word in given if word.endswith(".py")), None)
            if script is None:
                raise
            from shlex import join

            example = join([script, "--", *_with_value(given, error.option_name)])
            hint = f"Arguments of the script go after `--`, as in: tfyard run {example}"
            raise click.UsageError(f"{error.format_message()}\n{hint}", ctx) from None


def _with_value(words: list[str], option: str) -> list[str]:
    """An option as it was written, and what follows it up to the next."""
    start = next(index for index, word in enumerate(words) if word.startswith(option))
    value = takewhile(lambda word: not word.startswith("-") and not word.endswith(".py"), words[start + 1 :])
    return [words[start], *value]


@click.command("run", cls=_Run)
@click.argument("target", metavar="FILE")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--chief", type=click.IntRange(0), help="How many chiefs (0 or 1).")
@click.option("--worker", type=click.IntRange(0), help="How many workers.")
@click.option("--ps", type=click.IntRange(0), help="How many parameter servers.")
@click.option("--evaluator", type=click.IntRange(0), help="How many evaluators.")
@click.option("--set", "sets", multiple=True, metavar="ROLE=N", help="Set how many tasks a role has.")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable for every task.")
@click.option("--mount", multiple=True, metavar="NAME=DIR", help="Use this directory for that volume.")
@click.option("--save", metavar="FILE", help="Write a job file that does the same, and run it.")
@click.option("--name", help="Name of the job; default: the file's.")
@click.option("--dry-run", is_flag=True, help="Print the processes and their TF_CONFIG; start nothing.")
@click.option("--gpus", is_flag=True, help="Warn if there is no GPU; GPUs are always distributed.")
@click.option("--share-gpus", is_flag=True, help="Let tasks share GPUs if they request more than there are.")
@click.option("--tensorboard", is_flag=True, help="Start TensorBoard on the job's log directory.")
@click.option(
    "--kill",
    multiple=True,
    metavar="TASK@TIME[:now]",
    help="Evict a task after that time, as a preemption does: by SIGTERM; with :now, by SIGKILL.",
)
@click.option(
    "--attach", multiple=True, metavar="TASK", help="Start this task yourself, for example in a debugger."
)
@click.option("--metric", metavar="REGEX", help="Regex for metrics; named groups: step, total, others.")
@click.option("-q", "--quiet", is_flag=True, help="No log lines; only problems and the summary.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Lines, or JSON events."
)
def command(dry_run: bool, quiet: bool, output: str, **options: Any) -> None:
    """Run a job on this machine: every task is a real process with a real TF_CONFIG; no cluster, no containers.

    FILE is a tfyard job file, a TFJob of any version, or a Python script. For a script, options set the
    roles, and what follows `--` goes to the script:

        tfyard run train.py --worker 2 --ps 1 -- --steps 100

    Exits with 0 if the job succeeded, else with the failed task's code, 124 if it missed its deadline,
    130 after Ctrl-C.
    """
    from tfyard.cli import problems
    from tfyard.local.prepare import prepare
    from tfyard.local.settings import Settings

    prepared = prepare(Settings(**options))
    problems.report(prepared.warnings, prepared.text)
    if prepared.settings.save is not None:
        _save(prepared.settings.save, prepared.settings, dry_run=dry_run)
    if dry_run:
        _print_commands(prepared)
    else:
        sys.exit(_follow(prepared, output, quiet=quiet))


def _save(name: str, settings: "Settings", *, dry_run: bool) -> None:
    """Write the job file that does the same as the script with its options."""
    from tfyard import files, formats
    from tfyard.cli import editor
    from tfyard.formats.writing import SCHEMA_LINE
    from tfyard.local import script

    if dry_run:
        click.echo(f"--save: a dry run does not write {name}", err=True)
    elif script.job_file(settings).exists():
        raise Usage(f"--save: {name} exists; choose another name")
    else:
        files.write_text(name, SCHEMA_LINE + formats.to_yaml(script.words(settings)))
        editor.write_schema(name)


def _print_commands(prepared: "Prepared") -> None:
    """What would be started: directory, environment of its own, command; copied into a shell, it runs."""
    from shlex import join, quote

    from tfyard.local.machine import base_env, commands

    inherited = base_env()
    for task, process in commands(prepared).items():
        click.echo(f"{task.name}:")
        click.echo(f"  cd {quote(process.cwd)}")
        for name, value in process.env.items():
            if inherited.get(name) != value:
                click.echo(f"  {name}={quote(value)}")
        click.echo(f"  {join(process.argv)}")


def _follow(prepared: "Prepared", output: str, *, quiet: bool) -> int:
    import asyncio

    from tfyard.cli.screen.follow import Follower

    try:
        record = asyncio.run(Follower(prepared, output, quiet=quiet).follow())
    except OSError as error:
        raise TfyardError(f"{error.filename or 'the run directory'}: {error.strerror}") from error
    return record.exit_code or 0
