"""`tfyard exec`: a command in a task of a job, or in all of them."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from msgspec import Struct

from tfyard.cli import cluster, offers, target
from tfyard.errors import Usage
from tfyard.extras import needs

SIGPIPE_CODE = 141
"""As shells tell it: who read the output has gone."""


class Given(Struct, frozen=True, kw_only=True):
    words: tuple[str, ...]
    argv: tuple[str, ...]
    stdin: bool
    tty: bool
    container: str
    every: bool


class _AfterDashes(click.Command):
    """What follows the first `--` is the command, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["argv"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("exec", cls=_AfterDashes, options_metavar="[OPTIONS]")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("words", metavar="[TASK] -- COMMAND...", nargs=-1, shell_complete=offers.tasks)
@click.option(
    "-i", "--stdin", is_flag=True, help="Pass standard input; it is passed anyway from a pipe or file."
)
@click.option("-t", "--tty", is_flag=True, help="The command gets a terminal, as a shell needs it.")
@click.option("-c", "--container", default="", metavar="NAME", help="Default: the one that trains.")
@click.option(
    "--all", "every", is_flag=True, help="In every running task, or in those of the ROLEs that follow."
)
@cluster.job_options
@click.pass_context
def command(context: click.Context, /, name: str, words: tuple[str, ...], **options: Any) -> None:
    """Run a command in a running task of a job, and exit with its exit code. What follows `--` is the command.

    With --all it runs in every running task at once, or in those that are named (worker, ps-0, worker-0..3). Each
    line has its task in front, and the exit code is the first that is not 0, in the order of the tasks.

    A task of a run on this machine has its command in its own environment, working directory and mounts.

    \b
    Examples:
      tfyard exec mnist worker-0 -- nvidia-smi
      tfyard exec -it mnist worker-0 -- bash
      tfyard exec --all mnist worker -- df -h /out
      tfyard exec mnist worker-0 -- tar cz -C /out . > out.tgz
    """
    flags = {flag: options.pop(flag) for flag in ("stdin", "tty", "container", "every")}
    given = Given(words=words, argv=context.meta["argv"], **flags)
    _check(given, name)
    try:
        sys.exit(_run(target.find(name, options), given))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SIGPIPE_CODE)


def _check(given: Given, name: str) -> None:
    if not given.argv:
        raise Usage(
            f"the command is missing: tfyard exec {name} {' '.join(given.words) or 'TASK'} -- COMMAND"
        )
    if given.every and (given.stdin or given.tty):
        raise Usage("--all runs without input and without a terminal: leave out -i and -t")
    if len(given.words) > 1 and not given.every:
        raise Usage(f"one task at a time, not {', '.join(given.words)}; or several with --all")


def _run(found: target.Target, given: Given) -> int:
    if isinstance(found, target.LocalRun):
        return _in_run(found, given)
    from tfyard.cli import interrupts

    with needs("kubernetes", "tfyard exec"):
        from tfyard.cli import exec_session
    from tfyard.overview.log_lines import chosen
    from tfyard.remote import tasks

    names, pods = tasks.names(found.found), tasks.pods(found.client, found.found)
    found.client.close()
    access = found.client.access
    if given.every:
        meant = chosen(given.words, names)
        containers = exec_session.running(found.found, pods, meant, given.container)
        return interrupts.run(exec_session.in_all(access, containers, given.argv, names))
    where = tasks.container_of(found.found, pods, tasks.only(given.words, names), given.container)
    return interrupts.run(exec_session.in_one(access, where, given.argv, stdin=given.stdin, tty=given.tty))


def _in_run(found: target.LocalRun, given: Given) -> int:
    from tfyard.local import tasks

    if given.container:
        raise Usage("-c chooses a container of a pod; a task of a run on this machine is one process")
    return tasks.exec(found.record, given.words, given.argv, every=given.every)
