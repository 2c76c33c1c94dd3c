"""`tfyard why`: prints the cause of a job's state, the fix, and the evidence."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from tfyard.cli import cluster, interrupts, output, several
from tfyard.errors import NotPossible
from tfyard.overview import sweep_why
from tfyard.overview.cause_kinds import KINDS
from tfyard.overview.why import Answer, explain
from tfyard.overview.why_text import lines
from tfyard.overview.wording import harmless
from tfyard.sdk.place import Place

if TYPE_CHECKING:
    from tfyard.sdk.stacks import ProgramStacks

HOW = (
    "`pip install py-spy` where the program runs (on a cluster: in its image), or in the program"
    " `import faulthandler, signal; faulthandler.register(signal.SIGUSR1)`"
)


@click.command("why")
@several.names_argument
@several.selector_option
@click.option("--stacks", "with_stacks", is_flag=True, help="Also show what the programs are doing now.")
@output.text_or_json
@cluster.job_options
def command(names: tuple[str, ...], with_stacks: bool, **options: Any) -> None:
    """Say why jobs wait or have failed: the cause in one sentence, the fix, and the evidence with its age.

    JOB is a TFJob of the cluster, a run on this machine, or a sweep. Causes are not guessed: if the cause is
    unknown, the answer says so and lists what was checked. The last line names the command
    that explains such causes.

    --stacks asks py-spy in each running task for the stacks of its Python programs, if it is installed there.
    Else a program that catches SIGUSR1 is sent it, and its answer is read from its log: a program that uses this
    signal for something else does that. Programs that do not catch it are left alone. On a cluster it needs
    `create` on `pods/exec`.

    Exit codes: 0 nothing is wrong; 1 the job has failed; 2 an error, such as an unknown name; 3 the job waits;
    4 the cause is unknown. Of several jobs, the highest.

    \b
    Examples:
      tfyard why mnist
      tfyard why mnist -n research -o json
      tfyard why --local mnist
      tfyard why -l team=vision
      tfyard why @latest
      tfyard why mnist --stacks
    """
    now = datetime.now(UTC)
    places = several.places(names, options)
    answers = [_answer(place, now) for place in places]
    found = [_stacks(place) for place in places] if with_stacks else []
    if options["output"] == "json":
        told = [{**to_builtins(each), "stacks": more} for each, more in zip(answers, found, strict=False)]
        output.print_answers(told or answers, single=len(names) == 1)
    else:
        texts = ["\n".join([*lines(answer, now), *_more(answer)]) for answer in answers]
        texts = [f"{text}\n{_as_text(more)}" for text, more in zip(texts, found, strict=False)] or texts
        headed = [f"{answer.job}: {text}" for answer, text in zip(answers, texts, strict=True)]
        click.echo("\n\n".join(headed if len(answers) > 1 else texts))
    sys.exit(max(answer.code for answer in answers))


def _answer(place: Place, now: datetime) -> Answer:
    state = place.sweep()
    if state is None:
        return explain(place.evidence(), now)
    try:
        trial = explain(place.evidence(), now)
    except NotPossible:  # no trial has a job
        trial = None
    return sweep_why.explain(place.name, state, trial)


def _stacks(place: Place) -> "list[ProgramStacks]":
    """What the programs of the running tasks are doing."""
    # 15 ms, which other answers do not need.
    from tfyard.sdk import stacks
    from tfyard.sdk.sweep_place import for_one_trial

    if (sweep := place.sweep()) is not None:
        raise for_one_trial(place.name, sweep)
    since, tasks = stacks.now(), place.tasks()
    interrupts.exit_by_exception()
    programs = stacks.with_answers(place, since, interrupts.run(stacks.gathered(place, tasks)))
    if rest := len(tasks[stacks.MOST_TASKS :]):
        problem = f"not asked, and {rest - 1} more: `tfyard exec` reaches them"
        programs.append(stacks.ProgramStacks(task=tasks[stacks.MOST_TASKS], problem=problem))
    return programs


def _as_text(programs: "Sequence[ProgramStacks]") -> str:
    return harmless("\n".join(_lines_of(programs)))


def _lines_of(programs: "Sequence[ProgramStacks]") -> Iterator[str]:
    """For each program a headline, then its stacks, or why there are none."""
    for each in programs:
        yield ""
        yield f"{each.task}, process {each.pid}: {each.command}" if each.pid else f"{each.task}:"
        yield from (f"  {line}" for line in each.stacks.rstrip().splitlines())
        if each.problem:
            yield f"  {each.problem}"
    if any(each.problem and each.pid for each in programs):
        yield ""
        yield f"to see more: {HOW}"


def _more(answer: Answer) -> Iterator[str]:
    """Where causes of this kind are explained: those of earlier attempts are over."""
    for cause in answer.causes:
        if not cause.is_past and cause.kind in KINDS:
            yield click.style(f"more: tfyard explain why.{cause.kind}", dim=True)
            return
