"""`tfyard runs`: lists past runs, shows their results, and prints their logs."""

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from tfyard.cli import offers, target
from tfyard.cli.output import print_json
from tfyard.cli.screen.summary import columns, summary
from tfyard.local import runs
from tfyard.local.evidence import why
from tfyard.logs.readings import storable, without_colours
from tfyard.node.logs import LogFileFollower, WrittenLines
from tfyard.overview import lost_peers
from tfyard.overview.summary import RUN_COLUMNS, run_row
from tfyard.overview.wording import PROGRAM


@click.group("runs", invoke_without_command=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="A table, or JSON.")
@click.pass_context
def command(context: click.Context, output: str) -> None:
    """List past runs, show one, print its logs, or remove it.

    The newest 100 runs that have ended are kept; TFYARD_KEEP_RUNS sets another number, or all.

    \b
    Examples:
      tfyard runs
      tfyard runs show @latest
      tfyard runs logs mnist worker-0
      tfyard runs rm mnist
    """
    if context.invoked_subcommand is not None:
        return
    now = datetime.now(UTC)
    records = runs.records(now, target.say)
    if output == "json":
        print_json(records)
    elif not records:
        click.echo("no runs yet; start one with `tfyard run FILE`")
    else:
        for line in columns([RUN_COLUMNS, *(run_row(record, now) for record in records)]):
            click.echo(line)


@command.command("show")
@click.argument("name", metavar="RUN", shell_complete=offers.runs)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Text, or JSON.")
def show(name: str, output: str) -> None:
    """Show how a run went: outcome per task, why it failed, the loss. RUN is the name of the run or of its job,
    or the beginning of its name, if no other job's runs begin so."""
    run, record = runs.find(name, say=target.say)
    if output == "json":
        last = storable(runs.progress(run).values)
        print_json({**msgspec.to_builtins(record), "metrics": last, "directory": str(run.path)})
        return
    click.echo(run.name)
    lost = [*lost_peers.sentences(run.status().endings)]
    for line in summary(record, runs.progress(run), why(run, record), lost):
        click.echo(line)
    click.echo(f"\nlogs: {run.path}/logs")


@command.command("rm")
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=offers.runs)
def remove(names: tuple[str, ...]) -> None:
    """Remove runs and their logs. RUN is the whole name of a run, or of its job: its newest run. The volumes of
    their jobs stay."""
    for name in names:
        click.echo(f"removed {runs.remove(name)}")


@command.command("logs")
@click.argument("name", metavar="RUN", shell_complete=offers.runs)
@click.argument("task", required=False, shell_complete=offers.tasks)
@click.option(
    "--raw", is_flag=True, help="Print the bytes that the tasks wrote, with their control characters."
)
def logs(name: str, task: str | None, raw: bool) -> None:
    """Print the logs of a run: every start of every task, or of one TASK. Of a line that was rewritten, such as a
    progress bar, the final state is printed."""
    paths = runs.logs(name, task, target.say)
    for path in paths:
        if raw:
            _copy(path)
        else:
            _print_log(path, f"{path.name.removesuffix('.log')} {PROGRAM} " if len(paths) > 1 else "")
    sys.stdout.flush()


def _copy(path: Path) -> None:
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)


def _print_log(path: Path, label: str) -> None:
    """Print a log as `run` does: with colours on a terminal, and with the label before each line."""
    has_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for item in LogFileFollower("", path).close():
        if isinstance(item, WrittenLines):
            text = (
                "\n".join(map(_ended, item.text.split("\n"))) if has_colours else without_colours(item.text)
            )
            sys.stdout.write(label + text.replace("\n", f"\n{label}") + "\n")


def _ended(line: str) -> str:
    """Reset colours at the end of the line."""
    return f"{line}\x1b[0m" if "\x1b" in line else line
