"""`tfyard runs`: past runs, how they went, and their logs."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from tfyard.cli.screen.summary import columns, summary
from tfyard.local import runs
from tfyard.node.logs import clean
from tfyard.overview.summary import RUN_COLUMNS, run_row


@click.group("runs", invoke_without_command=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="A table, or JSON.")
@click.pass_context
def command(context: click.Context, output: str) -> None:
    """List past runs, show one, or print its logs."""
    if context.invoked_subcommand is not None:
        return
    now = datetime.now(UTC)
    found = runs.records(now)
    if output == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    elif not found:
        click.echo("no runs yet; start one with `tfyard run FILE`")
    else:
        for line in columns([RUN_COLUMNS, *(run_row(record, now) for record in found)]):
            click.echo(line)


@command.command("show")
@click.argument("name", metavar="RUN")
def show(name: str) -> None:
    """Show how a run went: outcome per task, why it failed, the loss. RUN is the name of the run or of its job,
    or the beginning of its name."""
    run, record = runs.find(name)
    click.echo(run.name)
    for line in summary(record, runs.progress(run)):
        click.echo(line)
    click.echo(f"\nlogs: {run.path}/logs")


@command.command("logs")
@click.argument("name", metavar="RUN")
@click.argument("task", required=False)
def logs(name: str, task: str | None) -> None:
    """Print the logs of a run: every start of every task, or of one TASK."""
    found = runs.logs(name, task)
    for path in found:
        _print_log(path, alone=len(found) == 1)


def _print_log(path: Path, *, alone: bool) -> None:
    """One log as it is; several with their task in front of each line."""
    label = path.name.removesuffix(".log")
    with path.open("rb") as file:
        for line in file:
            if alone:
                sys.stdout.buffer.write(line)
            else:
                click.echo(f"{label} │ {clean(line.rstrip(bytes((10,))))}")
    sys.stdout.flush()
