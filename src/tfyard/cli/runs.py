"""`tfyard runs`: lists past runs, shows their results, and prints their logs."""

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tfyard.backends.local import run_directory
from tfyard.cli import offers, target
from tfyard.cli.output import print_json
from tfyard.cli.screen.summary import columns, summary
from tfyard.errors import NoSuchJob, NotPossible
from tfyard.local import runs
from tfyard.local.evidence import why
from tfyard.logs.readings import storable
from tfyard.logs.terminal_text import with_reset_colours, without_colours
from tfyard.model.run_record import RunRecord
from tfyard.model.sweep import SweepState
from tfyard.node.logs import LogFileFollower, WrittenLines
from tfyard.overview import lost_peers, sweep_text
from tfyard.overview.summary import RUN_COLUMNS, run_row
from tfyard.overview.wording import PROGRAM, harmless
from tfyard.sdk.on_machine import has_sweeps

if TYPE_CHECKING:
    from tfyard.local.sweeps import SweepFolder


@click.group("runs", invoke_without_command=True)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
@click.pass_context
def command(context: click.Context, output: str) -> None:
    """List past runs, show one, print its logs, or remove it. The trials of a sweep are one row.

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
        for line in columns([RUN_COLUMNS, *_rows(records, now)]):
            click.echo(line)


def _rows(records: Sequence[RunRecord], now: datetime) -> list[tuple[str, ...]]:
    """The newest first. A sweep is one row, instead of a row for each of its trials."""
    swept = _sweeps()
    others = [record for record in records if record.trial is None or record.trial.sweep not in swept]
    rows = [(record.started, run_row(record, now)) for record in others]
    rows += [(state.created, sweep_text.run_row(name, state, now)) for name, state in swept.items()]
    return [row for _, row in sorted(rows, reverse=True)]


def _sweeps() -> dict[str, SweepState]:
    if not has_sweeps():
        return {}
    from tfyard.local import sweeps  # 40 ms with formats/, which folders without sweeps do not need

    return {folder.name: folder.as_it_is(state) for folder, state in sweeps.all_sweeps(run_directory.HOME)}


def _sweep_called(name: str) -> "SweepFolder | None":
    if not has_sweeps():
        return None
    from tfyard.local import sweeps  # as above

    return sweeps.called(name, run_directory.HOME)


@command.command("show")
@click.argument("name", metavar="RUN", shell_complete=offers.runs)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
def show(name: str, output: str) -> None:
    """Show how a run went: outcome per task, why it failed, the loss. RUN is the name of the run or of its job,
    or the beginning of its name, if no other job's runs begin so."""
    if (sweep := _sweep_called(name)) is not None:
        _show_sweep(sweep, output)
        return
    run, record = runs.find(name, say=target.say)
    if output == "json":
        last = storable(runs.progress(run).values)
        print_json({**msgspec.to_builtins(record), "metrics": last, "directory": str(run.path)})
        return
    click.echo(run.name)
    lost = [*lost_peers.sentences(run.status().endings)]
    for line in summary(record, runs.progress(run), why(run, record) if record.has_failure else [], lost):
        click.echo(line)
    click.echo(f"\nlogs: {run.path}/logs")


def _show_sweep(sweep: "SweepFolder", output: str) -> None:
    if (state := sweep.load()) is None:
        raise NoSuchJob(f"the sweep {sweep.name} was deleted")
    if output == "json":
        print_json(sweep.as_it_is(state))
        return
    from tfyard.cli.screen.sweep import described  # 30 ms, which runs do not need

    for line in described(sweep.name, sweep.as_it_is(state)):
        click.echo(harmless(line))
    click.echo(f"\nfolder: {sweep.path}")


@command.command("rm")
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=offers.runs)
def remove(names: tuple[str, ...]) -> None:
    """Remove runs and their logs. RUN is the whole name of a run, or of its job: its newest run. The volumes of
    their jobs stay. A sweep is removed with the runs of its trials."""
    for name in names:
        sweep = _sweep_called(name)
        click.echo(f"removed {runs.remove(name) if sweep is None else _remove_sweep(sweep)}")


def _remove_sweep(sweep: "SweepFolder") -> str:
    if sweep.is_driven:
        raise NotPossible(f"{sweep.name} is still running; `tfyard stop {sweep.name}` stops it")
    sweep.remove()
    return sweep.name


@command.command("logs")
@click.argument("name", metavar="RUN", shell_complete=offers.runs)
@click.argument("task", required=False, shell_complete=offers.tasks)
@click.option(
    "--raw", is_flag=True, help="Print the bytes that the tasks wrote, with their control characters."
)
def logs(name: str, task: str | None, raw: bool) -> None:
    """Print the logs of a run: every start of every task, or of one TASK. Of a line that was rewritten, such as a
    progress bar, the final state is printed."""
    if (sweep := _sweep_called(name)) is not None:
        raise NotPossible(f"{sweep.name} is a sweep: `tfyard logs {name}` prints the logs of all its trials")
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
            text = with_reset_colours(item.text) if has_colours else without_colours(item.text)
            sys.stdout.write(label + text.replace("\n", f"\n{label}") + "\n")
