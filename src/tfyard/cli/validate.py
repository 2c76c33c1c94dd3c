"""`tfyard validate`: reports every problem of every file."""

import json
import sys
from collections.abc import Iterator

import click

from tfyard import formats
from tfyard.cli import files, problems
from tfyard.errors import Invalid
from tfyard.formats.tfjob.versions import why_not_served
from tfyard.model import Job, Problem

Found = tuple[str, Problem]
"""The name of a file, and a problem in it."""


@click.command("validate")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
def command(names: tuple[str, ...], output: str) -> None:
    """Check job files, TFJobs of any version, sweep files with their jobs, and Kubernetes' own workloads that
    `tfyard convert` reads.

    The workloads of all files are checked together, as one cluster: `tfyard validate ps.yaml worker.yaml`.

    Exits with 0 if all are valid (warnings allowed) and with 1 if not.

    \b
    Examples:
      tfyard validate job.yaml
      tfyard validate sweep.yaml
      kubectl get tfjobs -o yaml | tfyard validate -
      tfyard validate ps.yaml worker.yaml -o json
    """
    findings = list(_validate(names, quiet=output == "json"))
    if output == "json":
        rows = [problems.as_json(problem, name) for name, problem in findings]
        click.echo(json.dumps(rows, indent=2))
    sys.exit(1 if any(problem.severity == "error" for _, problem in findings) else 0)


def _validate(names: tuple[str, ...], *, quiet: bool) -> Iterator[Found]:
    workloads: list[formats.Document] = []
    for name in names:
        shown = files.display_name(name)
        try:
            documents = _read(name, shown)
        except Invalid as error:
            if not quiet:
                problems.report(error.problems, error.text, shown)
            yield from ((shown, problem) for problem in error.problems)
            continue
        if files.has_only_workloads(documents):
            workloads += documents
            continue
        for document in documents:
            if formats.is_sweep(document.data):
                yield from _check_sweep(document, name, quiet=quiet)
            else:
                yield from ((shown, problem) for problem in _check(document, name, quiet=quiet))
    yield from _check_workloads(workloads, quiet=quiet)


def _read(name: str, shown: str) -> list[formats.Document]:
    documents = files.read_documents(name)
    if not documents:
        fix = "`tfyard init` writes a job file to start from"
        raise Invalid([Problem((), "the file is empty", fix)], (), shown)
    files.require_alone(documents, name)
    return documents


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


def _check_sweep(document: formats.Document, name: str, *, quiet: bool) -> Iterator[Found]:
    """Check a sweep file and the file of its job."""
    from tfyard.job_input.sweeps import check_files  # 15 ms, and most files have a job
    from tfyard.overview.sweep_text import described

    checked = check_files(document, name)
    for each in checked.problems:
        shown = files.display_name(each.name)
        if not quiet:
            problems.report([each.problem], each.text, shown)
        yield shown, each.problem
    if not quiet and checked.sweep is not None and not checked.problems:
        spec = checked.sweep.spec
        click.echo(
            f"{document.name}: {spec.name or 'the sweep'} is valid: {described(spec)}, of {checked.sweep.job}"
        )


def _check_workloads(documents: list[formats.Document], *, quiet: bool) -> Iterator[Found]:
    """Check workloads together, as one job, as `tfyard convert` reads them."""
    if not documents:
        return
    from tfyard.formats.workloads.load import load  # 8 ms, and most files have a job

    for converted in load(documents):
        for document, problem in converted.problems:
            if not quiet:
                problems.report([problem], document, document.name)
            yield document.name, problem
        if not quiet and not converted.has_errors:
            read = ", ".join(dict.fromkeys(document.name for document in documents))
            click.echo(f"{read}: {_summary(converted.one)}; `tfyard convert` makes it a TFJob")


def _not_checked(document: formats.Document) -> str:
    """Why a document is not checked: ConfigMaps and Secrets are for `tfyard run`, others are passed over."""
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    if kind not in ("ConfigMap", "Secret"):
        return files.passed_over(document)
    metadata = document.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.name}: {kind} {problems.escaped(str(name))}: not checked; `tfyard run` uses it"


def _summary(job: Job) -> str:
    roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles)
    return f"{job.name} is valid: {roles}"
