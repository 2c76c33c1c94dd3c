"""`tfyard template`: Jinja templates for single and distributed jobs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tfyard.cli import files
from tfyard.cli.template_filling import fill
from tfyard.errors import Usage
from tfyard.formats.metadata import DNS_LABEL, RULE
from tfyard.formats.tfjob.fields import MAX_REPLICAS
from tfyard.model import Manifest
from tfyard.model.names import MAX_LABEL
from tfyard.render import prerequisites

SHIPPED = Path(__file__).parent.parent / "render" / "jinja"
NAMES = {mode: f"tf_{mode}_template.yaml.jinja" for mode in ("single", "cluster", "shared")}
_NEXT = {
    "single": "single {} PROJECT > job.yaml",
    "cluster": "cluster {} PROJECT 1 2 > job.yaml",
    "shared": "plain {} | kubectl apply -f -",
}
"""Command to use each template with, after it was edited."""
MAX_TASKS = 10_000
Command = Callable[..., None]


@click.group("template")
def command() -> None:
    """Render Jinja templates for single and distributed jobs.

    `tfyard template init single` writes a template for editing; its head says what to edit. The objects that all
    jobs of a namespace share (the namespace itself, volumes, claims) have a template of their own:

    \b
        tfyard template init shared
        tfyard template plain tf_shared_template.yaml.jinja | kubectl apply -f -
        tfyard template init single
        tfyard template single tf_single_template.yaml.jinja my-project --set model_name=m-2 > job.yaml
    """


def _options(function: Command) -> Command:
    for option in (
        click.option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output."),
        click.option(
            "--values",
            "files",
            multiple=True,
            metavar="FILE",
            help="File with values, as YAML or JSON; repeatable.",
        ),
        click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A value; repeatable."),
    ):
        function = option(function)
    return function


@command.command("single")
@click.argument("template")
@click.argument("project")
@_options
def single(template: str, project: str, **options: Any) -> None:
    """Render a template for one pod that trains."""
    render(template, {"project_name": _project(project)}, **options)


@command.command("cluster")
@click.argument("template")
@click.argument("project")
@click.argument("ps", default="1")
@click.argument("workers", default="2")
@_options
def cluster(template: str, project: str, ps: str, workers: str, **options: Any) -> None:
    """Render a template for parameter servers and workers, each with its own name."""
    counts = _counts({"PS": ps, "WORKERS": workers})
    values = {"project_name": _project(project), "ps_replicas": counts["PS"]}
    render(template, {**values, "worker_replicas": counts["WORKERS"]}, **options)


@command.command("plain")
@click.argument("template")
@_options
def plain(template: str, **options: Any) -> None:
    """Render any template, with only the values of --values and --set."""
    render(template, {}, **options)


@command.command("init")
@click.argument("mode", type=click.Choice(list(NAMES)))
@click.option("-o", "--output", metavar="FILE", help="Name of the file; default: the template's own.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def init(mode: str, output: str | None, force: bool) -> None:
    """Write a template for editing: for a job, or for the objects that all jobs of a namespace share."""
    name = output or NAMES[mode]
    if Path(name).exists() and not force:
        raise Usage(f"{name} exists; --force overwrites it")
    files.write_text(name, (SHIPPED / NAMES[mode]).read_text(encoding="utf-8"))
    click.echo(f"wrote {name}; edit its head, then: tfyard template {_NEXT[mode].format(name)}")


def render(
    template: str,
    arguments: dict[str, Any],
    *,
    output: str | None = None,
    files: tuple[str, ...] = (),
    sets: tuple[str, ...] = (),
) -> None:
    """`arguments`: values of the project and the counts, which take precedence over --values."""
    shared, own = _read_values(files), _read_sets(sets)
    if twice := sorted(own.keys() & arguments.keys()):
        raise Usage(f"--set {', '.join(twice)}: given by an argument already")
    values = shared | own | arguments
    filled = fill(template, values, sets=list(own), shared=list(shared))
    _write(output, filled.text, inputs=(template, *files))
    _say_assumed(filled.manifests)


def _write(name: str | None, text: str, inputs: tuple[str, ...]) -> None:
    files.refuse_input(name, inputs, "choose another name")
    files.write_output(name, text)


def _say_assumed(manifests: list[Manifest]) -> None:
    """Name the objects that must exist: `kubectl create` needs the namespace, and pods wait for their claims."""
    assumed = prerequisites.assumed(manifests)
    pairs = (("namespace", assumed.namespaces), ("claims", assumed.claims))
    names = [f"the {kind} {', '.join(listed)}" for kind, listed in pairs if listed]
    if names:
        way = "`tfyard template init shared` writes a template for them"
        click.echo(f"tfyard: the cluster must have {' and '.join(names)}; {way}", err=True)


def _project(name: str) -> str:
    if not DNS_LABEL.fullmatch(name):
        raise Usage(f"project {name!r}: {RULE}; objects are named after it")
    if len(name) > MAX_LABEL:
        raise Usage(f"project {name!r}: must have at most {MAX_LABEL} characters; objects are named after it")
    return name


def _counts(texts: dict[str, str]) -> dict[str, int]:
    wrong = [
        f"{name} {text!r}: must be a number from 1 to {MAX_TASKS:,}"
        for name, text in texts.items()
        if not (text.isdecimal() and len(text) < 9 and 1 <= int(text) <= min(MAX_TASKS, MAX_REPLICAS))
    ]
    if wrong:
        raise Usage("; ".join(wrong))
    return {name: int(text) for name, text in texts.items()}


# --- values: `--values FILE` first, then `--set NAME=VALUE`


def _read_values(names: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in names:
        for document in files.read_documents(name):
            if not isinstance(document.data, dict):
                raise Usage(f"--values {name}: must be a mapping of names to values")
            values |= document.data
    return values


def _read_sets(sets: Sequence[str]) -> dict[str, Any]:
    """The values of `--set`; every wrong one is reported."""
    wrong = [words for words in sets if not words.partition("=")[0].isidentifier() or "=" not in words]
    if wrong:
        raise Usage(f"--set {', '.join(wrong)}: must be NAME=VALUE, as in --set image=tensorflow:2.21.0")
    return {name: _value(text) for name, _, text in (words.partition("=") for words in sets)}


def _value(text: str) -> Any:
    """The value of a text: `3` is a number and `true` a boolean; everything else is text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() and len(text) < 10 and str(int(text)) == text else text
