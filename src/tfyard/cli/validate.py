"""`tfyard validate`: reports every problem of every file."""

import sys

import click

from tfyard import formats
from tfyard.cli import files, problems
from tfyard.errors import Invalid
from tfyard.formats.tfjob.versions import why_not_served
from tfyard.model import Job, Problem


@click.command("validate")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the report."
)
def command(names: tuple[str, ...], output: str) -> None:
    """Check job files and TFJobs of any version.

    Exits with 0 if all are valid (warnings allowed) and with 1 if not.
    """
    found = [row for name in names for row in _validate(name, quiet=output == "json")]
    if output == "json":
        import json

        rows = [problems.as_json(problem, name) for name, problem in found]
        click.echo(json.dumps(rows, indent=2))
    sys.exit(1 if any(problem.severity == "error" for _, problem in found) else 0)


def _validate(name: str, *, quiet: bool) -> list[tuple[str, Problem]]:
    data = files.read_bytes(name)
    shown = files.display_name(name)
    try:
        documents = files.parse(data, name)
    except Invalid as error:
        if not quiet:
            problems.report(error.problems, formats.split_lines(data), shown)
        return [(shown, problem) for problem in error.problems]
    if not documents:
        click.echo(f"{shown}: no documents", err=True)
    return [(shown, problem) for document in documents for problem in _check(document, quiet=quiet)]


def _check(document: formats.Document, *, quiet: bool) -> tuple[Problem, ...]:
    if not formats.is_job(document.data):
        if not quiet:
            click.echo(files.passed_over(document))
        return ()
    checked = formats.check(document)
    if not quiet:
        problems.report(checked.problems, document, document.name)
        if not checked.errors and checked.job is not None:
            click.echo(f"{document.name}: {_summary(checked.job)}")
            if note := why_not_served(checked.job.api_version):
                click.echo(f"{document.name}: note: {note}; `tfyard convert` writes v1", err=True)
    return checked.problems


def _summary(job: Job) -> str:
    roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles)
    return f"{job.name} is valid: {roles}"
