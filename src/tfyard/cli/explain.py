"""`tfyard explain`: what a field means, like `kubectl explain`."""

import textwrap

import click

from tfyard.cli import output
from tfyard.errors import Usage
from tfyard.formats.declarations.explaining import Explanation, explain
from tfyard.model.spelling import did_you_mean
from tfyard.overview.cause_kinds import KINDS


@click.command("explain")
@click.argument("field", default="")
@output.text_or_json
def command(field: str, **options: str) -> None:
    """Explain a field and list the fields below it.

    `tfyard explain` lists the words of the job file, `tfyard explain worker.gpu` explains one of them;
    `tfyard explain sweep` lists the words of the sweep file;
    `tfyard explain tfjob.spec.runPolicy` explains a field of TFJob, down into the pod;
    `tfyard explain why.no-room` explains a kind of cause that `tfyard why` names.

    \b
    Examples:
      tfyard explain
      tfyard explain worker.gpu
      tfyard explain sweep.over
      tfyard explain tfjob.spec.runPolicy
      tfyard explain why.no-room
    """
    is_cause = field == "why" or field.startswith("why.")
    explanation = _cause(field.removeprefix("why").removeprefix(".")) if is_cause else explain(field)
    if options["output"] == "json":
        output.print_json(explanation)
        return
    for line in _lines(explanation):
        click.echo(line)


def _cause(kind: str) -> Explanation:
    if not kind:
        fields = {each: ("cause", text) for each, text in KINDS.items()}
        return Explanation(path="why", type="causes", description="What `tfyard why` names.", fields=fields)
    if kind not in KINDS:
        raise Usage(f"there is no cause {kind}; {did_you_mean(kind, KINDS)}")
    return Explanation(path=f"why.{kind}", type="cause", description=KINDS[kind])


def _lines(explanation: Explanation) -> list[str]:
    lines = [
        f"FIELD: {explanation.path or 'job file'} <{explanation.type}>",
        "",
        *_wrap(explanation.description, ""),
    ]
    if explanation.fields:
        lines += ["", "FIELDS:"]
    for name, (kind, text) in explanation.fields.items():
        lines += [f"  {name} <{kind}>", *_wrap(text, "      ")]
    return lines


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 96, initial_indent=indent, subsequent_indent=indent)
