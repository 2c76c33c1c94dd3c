"""`tfyard validate`: every problem of every file, at once."""

import sys

import click

from tfyard import formats
from tfyard.cli import files, problems
from tfyard.errors import Invalid
from tfyard.formats.source import split_lines
from tfyard.model import Job, Problem


@click.command("validate")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Form of the report."
)
def command(names: tuple[str, ...], output: str) -> None:
    """Check job files and TFJobs of any version.

    Exits with 0 if all are valid (warnings allowed) and with 1 if not.
    """
    found = [row for name in names for row in _validate(name, quiet=output == "json")]
    if output == "json":
        import json

        rows = [problems.as_json(problem, name) for name, problem in found]
        click.echo(json.dumps(rows, indent=2, default=str))
    sys.exit(1 if any(problem.severity == "error" for _, problem in found) else 0)


def _validate(name: str, *, quiet: bool) -> list[tuple[str, Problem]]:
    data = files.read_bytes(name)
    shown = files.display_name(name)
    try:
        documents = [part for document in formats.read(data, shown) for part in formats.split(document)]
    except Invalid as error:
        if not quiet:
            problems.report(error.problems, split_lines(data), shown)
        return [(shown, problem) for problem in error.problems]
    if not documents:
        click.echo(f"{shown}: nothing in it", err=True)
    return [(shown, problem) for document in documents for problem in _check(document, quiet=quiet)]


def _check(document: formats.Document, *, quiet: bool) -> tuple[Problem, ...]:
    if not formats.is_job(document.data):
        if not quiet:
            click.echo(f"{document.name}: passed over: {_kind(document.data)} is no job")
        return ()
    checked = formats.check(document)
    if not quiet:
        problems.report(checked.problems, document, document.name)
        if not checked.errors and checked.job is not None:
            click.echo(f"{document.name}: {_summary(checked.job)}")
    return checked.problems


def _kind(data: object) -> str:
    return str(data.get("kind") or "a mapping") if isinstance(data, dict) else f"a {type(data).__name__}"


def _summary(job: Job) -> str:
    roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles)
    return f"{job.name} is valid: {roles}"
