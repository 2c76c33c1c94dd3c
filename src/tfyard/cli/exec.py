"""`tfyard exec`: a command in a task of a job, or in all of them."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from tfyard.cli import cluster, interrupts, offers, target
from tfyard.cli.screen import colours
from tfyard.errors import NotRunning, TfyardError, Usage
from tfyard.logs.lines import chosen, only
from tfyard.logs.splitting import Splitter
from tfyard.overview.wording import PROGRAM, TOOL
from tfyard.sdk.place import CommandOutput, Place, TaskCommand
from tfyard.sdk.sweep_place import for_one_trial

SIGPIPE_CODE = 141
"""Exit code that shells give to a program whose output pipe was closed."""


class _AfterDashes(click.Command):
    """Takes everything after the first `--` as the command, options included."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["argv"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("exec", cls=_AfterDashes, options_metavar="[OPTIONS]")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("words", metavar="[TASK] -- COMMAND...", nargs=-1, shell_complete=offers.tasks)
@click.option(
    "-i", "--stdin", is_flag=True, help="Pass standard input; from a pipe or file it is always passed."
)
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal, as a shell needs it.")
@click.option(
    "-c",
    "--container",
    default="",
    metavar="NAME",
    help="Container of the pod; default: the one that trains.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Run the command in every running task, or in those of the ROLEs that follow.",
)
@cluster.job_options
@click.pass_context
def command(context: click.Context, /, name: str, words: tuple[str, ...], **options: Any) -> None:
    """Run a command in a running task of a job, and exit with its exit code. The command follows `--`.

    With --all it runs in every running task at once, or in those that are named (worker, ps-0, worker-0..3). Each
    line starts with its task, and the exit code is the first that is not 0, in the order of the tasks.

    In a run on this machine, the command has the environment, working directory and mounts of the task.

    \b
    Examples:
      tfyard exec mnist worker-0 -- nvidia-smi
      tfyard exec -it mnist worker-0 -- bash
      tfyard exec --all mnist worker -- df -h /out
      tfyard exec mnist worker-0 -- tar cz -C /out . > out.tgz
    """
    every = options.pop("every")
    task_command = TaskCommand(
        argv=context.meta["argv"], **{flag: options.pop(flag) for flag in ("stdin", "tty", "container")}
    )
    _check(name, words, task_command, every)
    place = target.to_change(name, options)
    if (sweep := place.sweep()) is not None:
        raise for_one_trial(place.name, sweep)
    try:
        sys.exit(_in_all(place, words, task_command) if every else _in_one(place, words, task_command))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SIGPIPE_CODE)


def _check(name: str, words: tuple[str, ...], task_command: TaskCommand, every: bool) -> None:
    if not task_command.argv:
        raise Usage(f"the command is missing: tfyard exec {name} {' '.join(words) or 'TASK'} -- COMMAND")
    if every and (task_command.stdin or task_command.tty):
        raise Usage("--all runs without input and without a terminal: leave out -i and -t")
    if len(words) > 1 and not every:
        raise Usage(f"one task at a time, not {', '.join(words)}; or several with --all")


def _in_one(place: Place, words: tuple[str, ...], task_command: TaskCommand) -> int:
    task = only(words, place.tasks())
    interrupts.exit_by_exception()
    return place.exec_here(task, task_command)


# --- all tasks


def _in_all(place: Place, words: tuple[str, ...], task_command: TaskCommand) -> int:
    names = place.tasks()
    return interrupts.run(_print_all(place, chosen(words, names), task_command, _OutputPrinter(names)))


async def _print_all(
    place: Place, tasks: Sequence[str], task_command: TaskCommand, printer: "_OutputPrinter"
) -> int:
    """Print the output of tasks; the result is the first exit code that is not 0, in the order of the tasks."""
    codes: dict[str, int] = {}
    async for event in place.exec(tasks, task_command):
        if isinstance(event, CommandOutput):
            printer.show(event)
        elif isinstance(event.problem, NotRunning):
            target.say(str(event.problem))
        else:
            codes[event.task] = event.code
            printer.end(
                event.task, str(event.problem or "") or (f"exit code {event.code}" if event.code else "")
            )
    if not codes:
        raise TfyardError(f"none of the chosen tasks of {place.name} is running")
    return next((codes[task] for task in tasks if codes.get(task)), 0)


class _OutputPrinter:
    """Prints lines after the name of their task, which is coloured on a terminal."""

    def __init__(self, names: Sequence[str]) -> None:
        self._width, self._colours = max(map(len, names)), colours.of_tasks(names)
        self._lines: dict[tuple[str, int], Splitter] = {}

    def show(self, output: CommandOutput) -> None:
        splitter = self._lines.setdefault((output.task, output.stream), Splitter())
        self._write(output.task, output.stream, PROGRAM, splitter.feed(output.data))

    def end(self, task: str, text: str) -> None:
        """Print what is left of the last lines, and `text`, which says how the command ended."""
        for stream in (1, 2):
            if splitter := self._lines.get((task, stream)):
                self._write(task, stream, PROGRAM, splitter.close())
        if text:
            self._write(task, 2, TOOL, [text.encode()])

    def _write(self, task: str, stream: int, mark: str, lines: Sequence[bytes]) -> None:
        file, label = (sys.stdout, sys.stderr)[stream - 1].buffer, f"{task:<{self._width}} {mark} "
        if os.isatty(stream) and not os.environ.get("NO_COLOR"):
            label = click.style(label, fg=self._colours[task])
        file.write(b"".join(label.encode() + line + b"\n" for line in lines))
        file.flush()
