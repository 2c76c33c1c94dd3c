"""`tfyard why`: prints the cause of a job's state, the fix, and the evidence."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, output, several
from tfyard.overview.why import Answer, explain
from tfyard.overview.why_text import lines

PAGE = "docs/why.md"


@click.command("why")
@several.names_argument
@several.selector_option
@output.text_or_json
@cluster.job_options
def command(names: tuple[str, ...], **options: Any) -> None:
    """Say why jobs wait or have failed: the cause in one sentence, the fix, and the evidence with its age.

    JOB is a TFJob of the cluster, or a run on this machine. Causes are not guessed: if the cause is unknown, the
    answer says so and lists what was checked. The last line names the place of docs/why.md about such causes.

    Exit codes: 0 nothing is wrong; 1 the job has failed; 2 an error, such as an unknown name; 3 the job waits;
    4 the cause is unknown. Of several jobs, the highest.

    \b
    Examples:
      tfyard why mnist
      tfyard why mnist -n research -o json
      tfyard why --local mnist
      tfyard why -l team=vision
      tfyard why @latest
    """
    now = datetime.now(UTC)
    answers = [explain(place.evidence(), now) for place in several.places(names, options)]
    if options["output"] == "json":
        output.print_answers(answers, single=len(names) == 1)
    else:
        texts = ["\n".join([*lines(answer, now), *_more(answer)]) for answer in answers]
        headed = [f"{answer.job}: {text}" for answer, text in zip(answers, texts, strict=True)]
        click.echo("\n\n".join(headed if len(answers) > 1 else texts))
    sys.exit(max(answer.code for answer in answers))


def _more(answer: Answer) -> Iterator[str]:
    """Where causes of this kind are explained: those of earlier attempts are over."""
    for cause in answer.causes:
        if not cause.is_past:
            yield click.style(f"more: {PAGE}#{cause.kind}", dim=True)
            return
