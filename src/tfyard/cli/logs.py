"""`tfyard logs`: of all tasks of a job on a cluster, or of a run on this machine."""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from tfyard.cli import cluster, offers, target
from tfyard.errors import Usage

if TYPE_CHECKING:
    from tfyard.cli.log_printer import Printer
    from tfyard.overview.log_lines import Wanted

RESTART, RELATIVE = "restart", "relative"


class _LogsCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`-t` alone, or `-t relative`: click would take the job's name as its value."""
        for at, word in enumerate(args):
            if word == "--":
                break
            if word in ("-t", "--timestamps"):
                is_relative = args[at + 1 : at + 2] == [RELATIVE]
                args[at : at + 1 + is_relative] = [f"--timestamps={RELATIVE if is_relative else 'utc'}"]
        return super().parse_args(ctx, args)


class Options(Struct, frozen=True):
    """Of the command, by their names."""

    words: tuple[str, ...] = ()
    follow: bool = False
    tail: int = -1
    since: str = ""
    timestamps: str = ""
    grep: str = ""
    attempt: str = ""
    all_attempts: bool = False
    prefix: bool = True
    output: str = "text"
    folds: bool = False
    """On a terminal, without the notices of TensorFlow's runtime."""


@click.command("logs", cls=_LogsCommand)
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("words", metavar="[TASK|ROLE]...", nargs=-1, shell_complete=offers.tasks)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends, and end with its exit code.")
@click.option("--tail", type=int, default=-1, metavar="N", help="Only the last N lines of each task.")
@click.option("--since", default="", metavar="TIME|restart", help="10m, 2h, or since the last restart.")
@click.option(
    "-t",
    "--timestamps",
    default="",
    metavar="[relative]",
    help="When each line was written; relative: since the job began.",
)
@click.option("--grep", default="", metavar="REGEX", help="Only lines that match; tracebacks stay whole.")
@click.option("--attempt", default="", metavar="N", help="Of each task's N-th attempt, as describe counts.")
@click.option("--all-attempts", is_flag=True, help="Of each attempt; of those without logs, how they ended.")
@click.option("--prefix/--no-prefix", default=True, help="The task in front of each line.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Text or JSON lines."
)
@cluster.job_options
def command(name: str, **options: Any) -> None:
    """Print what the tasks of a job have written: all of them, or those of a TASK (worker-0, worker-0..3) or ROLE.

    Lines go to standard output. What tfyard says (a task was restarted and why, lines are missing, what the job
    waits for) goes to standard error. worker-1#2 is the second attempt at worker-1.

    \b
    Examples:
      tfyard logs mnist                          # of all tasks, as they are now
      tfyard logs -f mnist worker ps-0           # until the job ends
      tfyard logs mnist -t relative --since 10m --grep 'loss|Error'
      tfyard logs mnist worker-1 --all-attempts  # also of attempts whose pods are gone
      tfyard logs -f mnist -o json | jq -r .text
    """
    given = Options(**{field: options.pop(field) for field in Options.__struct_fields__ if field in options})
    try:
        sys.exit(_logs(target.find(name, options), given))
    except BrokenPipeError:  # `head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _logs(found: target.Target, given: Options) -> int:
    return _of_run(found, given) if isinstance(found, target.LocalRun) else of_job(found, given)


# --- of a cluster


def of_job(found: target.ClusterJob, given: Options) -> int:
    """The exit code: the job's own, if it is followed to its end."""
    from tfyard import formats

    job = formats.check(found.found.manifest).job
    if job is None:
        raise Usage(f"{found.found.name} cannot be read: `tfyard describe {found.found.name}` says why")
    wanted = _wanted(given, [task.name for task in job.tasks()])
    status = found.found.summary.status
    printer = _printer([task.name for task in job.tasks()], wanted, given, status.start_time)
    if given.follow:
        return _follow(found, wanted, printer)
    from tfyard.remote import logs

    for event in logs.read(found.client, found.found, wanted):
        printer.show(event)
    printer.close()
    return 0


def _follow(found: target.ClusterJob, wanted: Wanted, printer: Printer) -> int:
    import asyncio

    from tfyard.extras import needs

    with needs("kubernetes", "tfyard logs -f"):
        from tfyard.remote import log_follow

    async def run() -> int:
        following = log_follow.follow(found.client.access, found.found, wanted, printer.show)
        async for verdict in following:
            printer.flush()
            if verdict:
                printer.close()
                target.say(verdict.text)
                return verdict.code
        return 0

    found.client.close()
    return asyncio.run(run())


# --- of this machine


def _of_run(found: target.LocalRun, given: Options) -> int:
    from tfyard.local import logs

    tasks = logs.tasks(found.directory)
    wanted = _wanted(given, tasks)
    printer = _printer(tasks, wanted, given, found.record.started)
    events = logs.follow(found.directory, wanted) if given.follow else logs.read(found.directory, wanted)
    for event in events:
        if event is None:
            printer.flush()
        else:
            printer.show(event)
    printer.close()
    return _code(found) if given.follow else 0


def _code(found: target.LocalRun) -> int:
    """Of a run that was followed to its end."""
    record = found.directory.load()
    if record is None:
        from tfyard.overview.waiting import deleted

        verdict = deleted(found.directory.name)
        target.say(verdict.text)
        return verdict.code
    return 1 if record.exit_code is None else record.exit_code  # it was killed


# --- options


def _wanted(given: Options, tasks: list[str]) -> Wanted:
    from tfyard.overview.log_lines import Wanted, attempt_of, chosen

    attempt, restart = attempt_of(given.attempt)
    since = _since(given.since)
    return Wanted(
        tasks=chosen(given.words, tasks),
        tail=given.tail if given.tail >= 0 else None,
        since=since,
        since_restart=given.since == RESTART,
        times=bool(given.timestamps),
        attempt=attempt,
        restart=restart,
        all_attempts=given.all_attempts,
    )


def _since(text: str) -> datetime | None:
    if text in ("", RESTART):
        return None
    from tfyard.formats import durations
    from tfyard.formats.declarations.reading import Notes

    seconds = durations.read(text, (), Notes())
    if seconds is None:
        raise Usage(f"--since {text}: must be a duration, for example 90s, 5m or 1h30m, or restart")
    return datetime.now(UTC) - timedelta(seconds=seconds)


def _printer(tasks: list[str], wanted: Wanted, given: Options, began: datetime | None) -> Printer:
    from tfyard.cli.log_printer import Look, Printer

    if given.timestamps not in ("", "utc", RELATIVE):
        raise Usage(f"--timestamps {given.timestamps}: the only value is relative")
    is_terminal = sys.stdout.isatty()
    look = Look(
        prefix=given.prefix and (len(wanted.tasks) > 1 or wanted.all_attempts),
        times=given.timestamps,
        began=began,
        is_json=given.output == "json",
        is_coloured=is_terminal and not os.environ.get("NO_COLOR"),
        may_skip=is_terminal and given.follow,
        folds=is_terminal and given.folds,
        pattern=_pattern(given.grep),
    )
    return Printer(tasks, look)


def _pattern(text: str) -> re.Pattern[bytes] | None:
    try:
        return re.compile(text.encode()) if text else None
    except re.error as problem:
        raise Usage(f"--grep {text}: {problem}") from None
