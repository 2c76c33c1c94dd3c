"""The list of commands. Each is imported when it is called, so that `--help` is fast."""

import gc
import os
import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from tfyard import __version__
from tfyard.errors import Invalid, TfyardError

MAX_WIDTH = 100
COLLECT_AFTER = 50_000
"""New objects after which the garbage collector runs. Importing a command creates half as many, and they stay."""
COMMANDS = {
    "run": "Run a job on this machine, every task as a real process.",
    "sweep": "Run a job many times on this machine, with other values, and find the best.",
    "best": "Print the values of a sweep's best trial, or the job file with them.",
    "runs": "List past runs, show one, print its logs, or remove it.",
    "submit": "Submit a job to a cluster: a file of any format, or a Python script; follow it to its end.",
    "get": "List jobs of a cluster and runs on this machine, or show some of them.",
    "describe": "Describe a job: state, attempts at its tasks, outputs, conditions, events.",
    "events": "Print the events of a job and of its pods.",
    "logs": "Print the logs of a job's tasks, and follow them until it ends.",
    "cp": "Copy files from a job or to it, also after its end.",
    "exec": "Run a command in a running task of a job, or in all of them.",
    "port-forward": "Reach a port of a task at 127.0.0.1, also when its pod is replaced.",
    "tensorboard": "Show the summaries of running or finished jobs in the browser.",
    "wait": "Wait until a job has succeeded, runs, or has ended.",
    "top": "Show what tasks use, how far they are and how fast.",
    "metrics": "Print the metrics of a training as a curve, a table or a picture.",
    "compare": "Show what differs between jobs, with their metrics side by side.",
    "dashboard": "Show jobs and runs in the browser, live, and change them there.",
    "doctor": "Check whether a cluster can run jobs, and say what to do if it cannot.",
    "why": "Say why a job waits or has failed, and how to fix it.",
    "diff": "Show what `submit` would change on a cluster.",
    "stop": "Stop a job: its pods are deleted, the job stays.",
    "resume": "Resume a job that was stopped.",
    "restart": "Start some tasks of a job again; it costs no retry.",
    "rerun": "Start a new job of the same spec.",
    "scale": "Change how many tasks the roles of a job have.",
    "delete": "Delete jobs with their pods; their data stays.",
    "render": "Write a job as Kubernetes manifests, with or without an operator.",
    "template": "Render Jinja templates for single and distributed jobs, or write them for editing.",
    "notebook": "Open a Jupyter server for a job, or write its manifests.",
    "validate": "Check job files, TFJobs and workloads; report every problem and how to fix it.",
    "convert": "Rewrite a job of any version, or workloads, as TFJob v1 or as a job file.",
    "explain": "Explain a field of the job file or of TFJob.",
    "crds": "Print the CustomResourceDefinitions of TFJob, for kubectl.",
    "install": "Install the operator on a cluster.",
    "uninstall": "Remove the operator from a cluster; jobs stay.",
    "init": "Write a commented job file to start from.",
    "dev": "Run a real Kubernetes on this machine, without containers and without root.",
    "operator": "Run the operator that reconciles the TFJobs of a cluster.",
    "completion": "Print a script that completes commands and names of jobs in your shell.",
    "version": "Print the version.",
}

ANSWERING, TROUBLE = ("diff", "wait", "why"), 2
"""Commands whose exit code 1 is an answer, and their exit code after an error."""
READING = ("get", "describe", "events", "logs", "top", "metrics", "compare", "doctor", "why")
"""Commands that only print: a closed pipe, as after `head`, is no error for them."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"tfyard.cli.{name.replace('-', '_')}").command
        gc.freeze()  # modules stay: the collector need not scan them
        gc.set_threshold(COLLECT_AFTER)
        gc.enable()
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            if ctx.invoked_subcommand not in READING:
                raise
            _close_output()
            ctx.exit(0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from tfyard.model.spelling import did_you_mean  # 10 ms, which --help does not need

            ctx.fail(f"unknown command {args[0]!r}; {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Replaces click's own method, which imports every command."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        matching = [item for item in COMMANDS.items() if item[0].startswith(incomplete)]
        return [CompletionItem(name, help=text) for name, text in matching]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _width() -> dict[str, int]:
    """Width of help texts: that of the terminal. click's own way imports shutil, and with it compressors."""
    try:
        return {"terminal_width": min(os.get_terminal_size().columns, MAX_WIDTH) - 2}
    except OSError:  # no terminal
        return {"terminal_width": MAX_WIDTH - 2}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], **_width()})
@click.version_option(__version__, "-V", "--version", prog_name="tfyard")
def tfyard() -> None:
    """One job file, three ways to use it: run TensorFlow training on this machine, render it as manifests, or
    let the operator run it on Kubernetes.

    A FILE is a tfyard job file or a TFJob of any version; `-` reads from standard input. `run`, `convert` and
    `validate` also read Kubernetes' own workloads, such as a Job.
    """


def main(program: str = "tfyard") -> None:
    """Call the command. Errors of tfyard are printed as one line, without a traceback, and set the exit code."""
    _open_streams()
    try:
        try:
            tfyard(prog_name=program, complete_var="_TFYARD_COMPLETE")
        finally:
            sys.stdout.flush()
    except OSError as error:  # a full disk, a folder that may not be read
        _close_output()
        click.echo(f"tfyard: {f'{error.filename}: ' if error.filename else ''}{error.strerror}", err=True)
        sys.exit(_error_code(1))
    except MemoryError:
        click.echo("tfyard: there is not enough memory for this", err=True)
        sys.exit(_error_code(1))
    except Invalid as error:
        from tfyard.cli.problems import report  # 25 ms, which --help does not need

        report(error.problems, error.text, error.name)
        sys.exit(_error_code(error.exit_code))
    except TfyardError as error:
        from tfyard.overview.wording import harmless  # as above

        click.echo(f"tfyard: {harmless(str(error))}", err=True)
        sys.exit(_error_code(error.exit_code))


def _error_code(code: int) -> int:
    return TROUBLE if code == 1 and sys.argv[1:2] and sys.argv[1] in ANSWERING else code


def _open_streams() -> None:
    """Open streams that were closed (`>&-`) on /dev/null."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _close_output() -> None:
    """Redirect standard output to /dev/null: Python would write the rest again at exit and print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
