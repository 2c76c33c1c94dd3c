"""`tfyard run`: the job on this machine, as real processes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click

from tfyard.errors import TfyardError, Usage

if TYPE_CHECKING:
    from tfyard.local.commands import Planned
    from tfyard.local.prepared import Prepared
    from tfyard.local.settings import Settings


class _Run(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [*args]  # the parser empties its list
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            program = _program(given)
            if not program:
                raise
            from shlex import join

            example = join([*program, "--", *_with_value(given, error.option_name)])
            hint = f"Arguments of the script go after `--`, as in: tfyard run {example}"
            raise click.UsageError(f"{error.format_message()}\n{hint}", ctx) from None


def _program(words: list[str]) -> list[str]:
    """The script or `-m MODULE` among the words of a command line."""
    if "-m" in words[:-1]:
        return words[words.index("-m") :][:2]
    return [word for word in words if word.endswith(".py")][:1]


def _with_value(words: list[str], option: str) -> list[str]:
    """An option as it was written, and what follows it up to the next."""
    start = next(index for index, word in enumerate(words) if word.startswith(option))
    value = takewhile(lambda word: not word.startswith("-") and not word.endswith(".py"), words[start + 1 :])
    return [words[start], *value]


@click.command("run", cls=_Run)
@click.argument("target", metavar="FILE", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "--module", metavar="MODULE", help="Run this Python module instead of a FILE.")
@click.option(
    "--python", metavar="PATH", help="The tasks' Python interpreter; default: the active environment's."
)
@click.option("--tf1", is_flag=True, help="The program is written for TensorFlow 1: give it tf.compat.v1.")
@click.option("--chief", type=click.IntRange(0), help="How many chiefs (0 or 1).")
@click.option("--worker", type=click.IntRange(0), help="How many workers.")
@click.option("--ps", type=click.IntRange(0), help="How many parameter servers.")
@click.option("--evaluator", type=click.IntRange(0), help="How many evaluators.")
@click.option("--set", "sets", multiple=True, metavar="ROLE=N", help="Set how many tasks a role has.")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable for every task.")
@click.option(
    "--restart",
    type=click.Choice(["never", "on-failure", "always", "exit-code"]),
    help="When a task of the script is restarted.",
)
@click.option("--retries", type=click.IntRange(0), help="How many restarts the script may have.")
@click.option("--deadline", metavar="TIME", help="The script fails if it runs longer than this: 90s, 2h.")
@click.option("--memory", metavar="SIZE", help="Memory limit of each task of the script, as in 4Gi.")
@click.option("--mount", multiple=True, metavar="NAME=DIR", help="Use this directory for that volume.")
@click.option("--save", metavar="FILE", help="Write a job file that does the same, and run it.")
@click.option("--name", help="Name of the job; default: the file's.")
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
    their image knows it:

    \b
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
    """With `-m MODULE` there is no FILE, and all words are the module's. DIR of --tensorboard may be left out, so
    what follows it may be the FILE."""
    target, words = options["target"], options["args"]
    if options["module"] is not None:
        return {**options, "target": "", "args": words if target is None else (target, *words)}
    if target is None and options["tensorboard"]:
        return {**options, "target": options["tensorboard"], "tensorboard": ""}
    if target is None:
        raise click.UsageError("Missing argument 'FILE'.", click.get_current_context())
    return options


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


def follow(prepared: "Prepared", output: str = "text", *, quiet: bool = False, verbose: bool = False) -> int:
    """Until the run has ended; its exit code."""
    import asyncio

    from tfyard.cli.screen.follow import Follower

    try:
        record = asyncio.run(Follower(prepared, output, quiet=quiet, verbose=verbose).follow())
    except OSError as error:
        raise TfyardError(f"{error.filename or 'the run directory'}: {error.strerror}") from error
    return record.exit_code or 0
