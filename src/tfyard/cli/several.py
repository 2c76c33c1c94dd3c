"""Commands about several jobs: by their names, or by the labels of TFJobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfyard.cli import offers, target
from tfyard.errors import TfyardError

if TYPE_CHECKING:
    from tfyard.sdk.place import Place

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
T = TypeVar("T")

names_argument = click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=offers.jobs)
selector_option = click.option(
    "-l", "--selector", default="", metavar="K=V", help="Choose TFJobs by their labels, instead of names."
)


def places(
    names: Sequence[str],
    options: Mapping[str, Any],
    find: Callable[[str, Mapping[str, Any]], Place] = target.find,
    *,
    running: bool = False,
) -> list[Place]:
    """The jobs of these names, or those with the labels of -l; `running`: of the latter, those that have not
    ended. All wrong names are reported at once, and end the command."""
    if bool(names) == bool(options["selector"]):
        raise click.UsageError("Name jobs, or choose them by -l.")
    if names:
        return each(lambda name: find(name, options), dict.fromkeys(names))
    jobs = target.of_cluster(options)
    chosen = jobs.running() if running else jobs.places()
    if not chosen:
        raise TfyardError(f"{jobs.nothing()}{' that has not ended' if running and jobs.rows() else ''}")
    return chosen


def each(ask: Callable[[S], T], of: Iterable[S]) -> list[T]:
    """The answers about all of them; all problems are reported at once, and end the command."""
    answers, problems = list[T](), list[TfyardError]()
    for one in of:
        try:
            answers.append(ask(one))
        except TfyardError as problem:
            problems.append(problem)
    end_with(problems)
    return answers


def end_with(problems: Sequence[TfyardError]) -> None:
    """Report the problems, if there are any; the command ends with the highest of their exit codes."""
    worst = max(reversed(problems), key=lambda problem: problem.exit_code, default=None)
    for problem in problems:
        if problem is not worst:
            target.say(str(problem))
    if worst:
        raise worst
