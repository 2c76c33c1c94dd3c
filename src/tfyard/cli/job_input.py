"""The arguments and options that describe a job, for `run`, `submit` and `diff`."""

import os
import re
from collections.abc import Callable
from itertools import pairwise, takewhile
from shlex import join
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


_GPUS = re.compile(r"--gpus \d+|--gpus=.*|--gpu\b.*")


class JobCommand(click.Command):
    """A command that says how to pass options to the script if one is unknown to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [*args]  # the parser empties its list
        _refuse_numbers_of_gpus(words, ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            program = _program(words)
            if not program:
                raise
            example = join([*program, "--", *_with_value(words, error.option_name)])
            hint = f"Arguments of the script go after `--`, as in: tfyard {self.name} {example}"
            raise click.UsageError(f"{error.format_message()}\n{hint}", ctx) from None


def _refuse_numbers_of_gpus(words: list[str], ctx: click.Context) -> None:
    """A number behind the flag would be taken for the file, or for an argument of the script."""
    own = [*takewhile(lambda word: word != "--", words)]
    if any(_GPUS.fullmatch(f"{word} {after}") for word, after in pairwise([*own, ""])):
        program = join(_program(own) or ["train.py"])
        text = "no option says how many GPUs a task gets: a job file does"
        writes = f"`gpu: 1` (`tfyard run {program} --save job.yaml` writes one)"
        hint = (
            f"Arguments of the script go after `--`, as in: tfyard {ctx.command.name} {program} -- --gpus 1"
        )
        raise click.UsageError(f"{text}, as in {writes}\n{hint}", ctx)


def _program(words: list[str]) -> list[str]:
    """The script or `-m MODULE` among the words of a command line."""
    if "-m" in words[:-1]:
        return words[words.index("-m") :][:2]
    return [word for word in words if word.endswith(".py")][:1]


def _with_value(words: list[str], option: str) -> list[str]:
    """An option as it was written, and its values."""
    start = next(index for index, word in enumerate(words) if word.startswith(option))
    value = takewhile(lambda word: not word.startswith("-") and not word.endswith(".py"), words[start + 1 :])
    return [words[start], *value]


def mlflow_option(help: str) -> Callable[[F], F]:
    return click.option("--mlflow", default="", callback=_without_credentials, metavar="URI", help=help)


def _without_credentials(_context: click.Context, _parameter: click.Parameter, uri: str) -> str:
    """The address of a server. Its credentials go where MLflow's own client looks for them, and into no record."""
    if "@" not in uri:
        return uri
    from tfyard.tracking.addresses import with_credentials_in  # few addresses have some

    return with_credentials_in(os.environ, uri)


def options(command: F) -> F:
    """Add an option for each field of `JobOptions`; `with_target` resolves FILE and MODULE."""
    for option in reversed(
        (
            click.argument("target", metavar="FILE", required=False),
            click.argument("args", nargs=-1, type=click.UNPROCESSED),
            click.option(
                "-m", "--module", metavar="MODULE", help="Run this Python module instead of a FILE."
            ),
            click.option(
                "--tf1", is_flag=True, help="The program is written for TensorFlow 1: give it tf.compat.v1."
            ),
            click.option("--chief", type=click.IntRange(0), help="Number of chiefs (0 or 1)."),
            click.option("--worker", type=click.IntRange(0), help="Number of workers."),
            click.option("--ps", type=click.IntRange(0), help="Number of parameter servers."),
            click.option("--evaluator", type=click.IntRange(0), help="Number of evaluators."),
            click.option(
                "--set", "sets", multiple=True, metavar="ROLE=N", help="Set the number of tasks of a role."
            ),
            click.option(
                "--env", multiple=True, metavar="K=V", help="Set an environment variable for every task."
            ),
            click.option(
                "--restart",
                type=click.Choice(["never", "on-failure", "always", "exit-code"]),
                help="Restart policy of the script's tasks.",
            ),
            click.option(
                "--retries", type=click.IntRange(0), help="Number of restarts that the script may have."
            ),
            click.option(
                "--deadline", metavar="TIME", help="The script fails if it runs longer than this: 90s, 2h."
            ),
            click.option(
                "--memory", metavar="SIZE", help="Memory limit of each task of the script, as in 4Gi."
            ),
            mlflow_option("Report parameters, metrics and the end of the job to this MLflow server."),
            click.option("--name", help="Name of the job; default: the file's."),
        )
    ):
        command = option(command)
    return command


def with_target(options: dict[str, Any]) -> dict[str, Any]:
    """The options with their target. With `-m MODULE` there is no FILE, and all arguments belong to the module."""
    target, words = options["target"], options["args"]
    if options["module"] is not None:
        return {**options, "target": "", "args": words if target is None else (target, *words)}
    if target is None:
        raise click.UsageError("Missing argument 'FILE'.", click.get_current_context())
    return options
