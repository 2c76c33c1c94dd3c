"""`tfyard runs`: what ran here, how it went, and what it said."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from tfyard.backends.local import run_directory
from tfyard.cli.screen.summary import columns, summary
from tfyard.errors import Usage
from tfyard.formats.loglines import stored
from tfyard.model.run_events import Metric
from tfyard.node.logs import clean
from tfyard.overview.progress import Progress
from tfyard.overview.record import RunRecord
from tfyard.overview.summary import RUN_COLUMNS, run_row


@click.group("runs", invoke_without_command=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="A table, or JSON.")
@click.pass_context
def command(context: click.Context, output: str) -> None:
    """List past runs, show one, or print its logs."""
    if context.invoked_subcommand is not None:
        return
    run_directory.sweep(datetime.now(UTC))
    found = [record for run in run_directory.all_runs() if (record := run.load()) is not None]
    if output == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    elif not found:
        click.echo("no runs yet; `tfyard run FILE` makes one")
    else:
        _print_table(found)


@command.command("show")
@click.argument("name", metavar="RUN")
def show(name: str) -> None:
    """Show how a run went: outcome per task, why it failed, the loss. RUN is its name, its job's, or how its
    name begins."""
    run = run_directory.find_run(name)
    record = run.load()
    if record is None:
        raise Usage(f"{run.name} was never begun")
    progress = Progress()
    for row in run.metrics():
        values = stored({name: value for name, value in row.items() if name not in ("at", "task", "step")})
        progress.note(Metric(task=row["task"], values=values, step=row["step"]), row["at"])
    click.echo(run.name)
    for line in summary(record, progress):
        click.echo(line)
    click.echo(f"\nlogs: {run.path}/logs")


@command.command("logs")
@click.argument("name", metavar="RUN")
@click.argument("task", required=False)
def logs(name: str, task: str | None) -> None:
    """Print the logs of a run, every attempt of every task, or of one TASK."""
    run = run_directory.find_run(name)
    found = run.logs(task)
    if not found:
        known = sorted({path.name.rsplit(".", 2)[0] for path in run.logs()})
        raise Usage(
            f"{run.name} has no logs of {task}; it has those of {', '.join(known)}"
            if known
            else f"{run.name} has no logs"
        )
    for path in found:
        _print_log(path, alone=len(found) == 1)


def _print_log(path: Path, *, alone: bool) -> None:
    """One log as it is; several with their task in front of each line."""
    label, _, start = path.name.removesuffix(".log").rpartition(".")
    with path.open("rb") as file:
        for line in file:
            if alone:
                sys.stdout.buffer.write(line)
            else:
                click.echo(f"{label}.{start} │ {clean(line.rstrip(bytes((10,))))}")
    sys.stdout.flush()


def _print_table(found: list[RunRecord]) -> None:
    now = datetime.now(UTC)
    for line in columns([RUN_COLUMNS, *(run_row(record, now) for record in found)]):
        click.echo(line)
