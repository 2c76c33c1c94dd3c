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
    shown = files.display_name(name)
    try:
        documents = files.read_documents(name)
        if not documents:
            fix = "`tfyard init` writes a job file to start from"
            raise Invalid([Problem((), "the file is empty", fix)], (), shown)
    except Invalid as error:
        if not quiet:
            problems.report(error.problems, error.text, shown)
        return [(shown, problem) for problem in error.problems]
    return [(shown, problem) for document in documents for problem in _check(document, name, quiet=quiet)]


def _check(document: formats.Document, name: str, *, quiet: bool) -> tuple[Problem, ...]:
    if not formats.is_job(document.data):
        if not quiet:
            click.echo(_not_checked(document))
        return ()
    checked = files.check(document, name)
    if not quiet:
        problems.report(checked.problems, document, document.name)
        if not checked.errors and checked.job is not None:
            click.echo(f"{document.name}: {_summary(checked.job)}")
            if note := why_not_served(checked.job.api_version):
                click.echo(f"{document.name}: note: {note}; `tfyard convert` writes v1", err=True)
    return checked.problems


def _not_checked(document: formats.Document) -> str:
    """`run` reads what its tasks need from the same file."""
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    if kind not in ("ConfigMap", "Secret"):
        return files.passed_over(document)
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.name}: {kind} {problems.escaped(str(name))}: not checked; `tfyard run` uses it"


def _summary(job: Job) -> str:
    roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles)
    return f"{job.name} is valid: {roles}"
