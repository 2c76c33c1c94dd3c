"""`tfyard template`: Jinja templates for single and distributed jobs."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tfyard import formats
from tfyard.cli import files, problems, template_process
from tfyard.errors import Invalid, Usage
from tfyard.formats.metadata import DNS_LABEL, RULE
from tfyard.formats.tfjob.fields import MAX_REPLICAS
from tfyard.formats.yaml.source import locate, split_lines
from tfyard.model import Problem
from tfyard.model.names import MAX_LABEL

SHIPPED = Path(__file__).parent.parent / "render" / "jinja"
NAMES = {"single": "tf_single_template.yaml.jinja", "cluster": "tf_cluster_template.yaml.jinja"}
MAX_TASKS = 10_000
MAX_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
# Their names become label values or host names.
_LABELS = frozenset({"Job", "Service", "StatefulSet", "Namespace"})
Command = Callable[..., None]


@click.group("template")
def command() -> None:
    """Render Jinja templates for single and distributed jobs.

    `tfyard template init single` writes one for editing; its head says what to edit.
    """


def _options(function: Command) -> Command:
    for option in (
        click.option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output."),
        click.option("--values", "files", multiple=True, metavar="FILE", help="Values, as YAML or JSON."),
        click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="One value; repeatable."),
    ):
        function = option(function)
    return function


@command.command("single")
@click.argument("template")
@click.argument("project")
@_options
def single(template: str, project: str, **options: Any) -> None:
    """One pod that trains."""
    render(template, {"project_name": _project(project)}, **options)


@command.command("cluster")
@click.argument("template")
@click.argument("project")
@click.argument("ps", default="1")
@click.argument("workers", default="2")
@_options
def cluster(template: str, project: str, ps: str, workers: str, **options: Any) -> None:
    """Parameter servers and workers, each with its own name."""
    counts = _counts({"PS": ps, "WORKERS": workers})
    given = {"project_name": _project(project), "ps_replicas": counts["PS"]}
    render(template, {**given, "worker_replicas": counts["WORKERS"]}, **options)


@command.command("plain")
@click.argument("template")
@_options
def plain(template: str, **options: Any) -> None:
    """Any template, with only the values of --values and --set."""
    render(template, {}, **options)


@command.command("init")
@click.argument("mode", type=click.Choice(list(NAMES)))
@click.option("-o", "--output", metavar="FILE", help="Name of the file; default: the template's own.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def init(mode: str, output: str | None, force: bool) -> None:
    """Write a template for editing."""
    name = output or NAMES[mode]
    if Path(name).exists() and not force:
        raise Usage(f"{name} exists; --force overwrites it")
    files.write_text(name, (SHIPPED / NAMES[mode]).read_text(encoding="utf-8"))
    counts = " 1 2" if mode == "cluster" else ""
    click.echo(f"wrote {name}; edit its head, then: tfyard template {mode} {name} PROJECT{counts} > job.yaml")


def render(
    template: str,
    given: dict[str, Any],
    *,
    output: str | None = None,
    files: tuple[str, ...] = (),
    sets: tuple[str, ...] = (),
) -> None:
    """Arguments (project, counts) take precedence over --values and --set."""
    _write(output, fill(template, _read_values(files, sets) | given), inputs=(template, *files))


def fill(template: str, given: dict[str, Any], *, trim: bool = False) -> str:
    """The rendered text, checked to be YAML. Problems have their lines in the template or in the text."""
    source = files.read_bytes(template)
    shown = files.display_name(template)
    try:
        text = template_process.fill(source.decode("utf-8"), given, trim=trim)
    except UnicodeDecodeError:
        raise Usage(f"{shown} is not UTF-8 text") from None
    except Invalid as error:
        problems.report(error.problems, split_lines(source), shown)
        raise Invalid(()) from None
    try:
        _check_manifests(text, shown)
    except Invalid as error:
        problems.report(error.problems, split_lines(text), f"{shown} (rendered)")
        raise Invalid(()) from None
    return text


def _write(name: str | None, text: str, inputs: tuple[str, ...]) -> None:
    files.refuse_input(name, inputs, "choose another name")
    files.write_output(name, text)


def _project(name: str) -> str:
    if not DNS_LABEL.fullmatch(name):
        raise Usage(f"project {name!r}: {RULE}; objects are named after it")
    if len(name) > MAX_LABEL:
        raise Usage(f"project {name!r}: must have at most {MAX_LABEL} characters; objects are named after it")
    return name


def _counts(given: dict[str, str]) -> dict[str, int]:
    wrong = [
        f"{name} {text!r}: must be a number from 1 to {MAX_TASKS:,}"
        for name, text in given.items()
        if not (text.isdecimal() and len(text) < 9 and 1 <= int(text) <= min(MAX_TASKS, MAX_REPLICAS))
    ]
    if wrong:
        raise Usage("; ".join(wrong))
    return {name: int(text) for name, text in given.items()}


# --- values: `--values FILE` first, then `--set NAME=VALUE`


def _read_values(names: Sequence[str], sets: Sequence[str]) -> dict[str, Any]:
    """Every wrong `--set` is reported, not only the first."""
    found: dict[str, Any] = {}
    for name in names:
        for document in files.read_documents(name):
            if not isinstance(document.data, dict):
                raise Usage(f"--values {name}: must be a mapping of names to values")
            found |= document.data
    wrong = [words for words in sets if not words.partition("=")[0].isidentifier() or "=" not in words]
    if wrong:
        raise Usage(f"--set {', '.join(wrong)}: must be NAME=VALUE, as in --set image=tensorflow:2.21.0")
    return found | {name: _value(text) for name, _, text in (words.partition("=") for words in sets)}


def _value(text: str) -> Any:
    """`3` is a number and `true` a boolean; everything else is text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() and len(text) < 10 and str(int(text)) == text else text


def _check_manifests(text: str, name: str) -> None:
    """A rendered template must be YAML with names that a cluster accepts."""
    problems = [
        problem
        for document in formats.read(text, name)
        for problem in locate(_names(document.data), document)
    ]
    if problems:
        raise Invalid(problems)


def _names(data: Any) -> list[Problem]:
    metadata = data.get("metadata") if isinstance(data, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is None or "kind" not in data:
        return []
    longest = MAX_LABEL if data["kind"] in _LABELS else MAX_NAME
    if isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= longest:
        return []
    text = f"must be lower-case letters, digits and '-', at most {longest}"
    return [Problem(("metadata", "name"), text, "change the project or the template's head", name)]
