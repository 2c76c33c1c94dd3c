"""`tfyard convert`: a job of any version, or Kubernetes' own workloads, as TFJob v1 or as a job file."""

from collections.abc import Iterator, Sequence

import click
from msgspec.structs import replace

from tfyard import formats
from tfyard.cli import editor, files, problems
from tfyard.errors import Invalid, Usage
from tfyard.formats.tfjob.versions import why_not_served
from tfyard.formats.workloads.load import Converted, load
from tfyard.formats.writing import comment
from tfyard.job_input.files import refuse_sweep


@click.command("convert")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--to",
    type=click.Choice(["v1", "jobfile"]),
    default="v1",
    help="Format of the output.",
    show_default=True,
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output.")
@click.option("--force", is_flag=True, help="Overwrite the file that is read.")
@click.option(
    "--allow-missing",
    is_flag=True,
    help="Convert even if the workloads list tasks that are not in the files.",
)
def command(
    names: tuple[str, ...], to: formats.Version, output: str | None, force: bool, allow_missing: bool
) -> None:
    """Rewrite a job of any version as TFJob v1 or as a tfyard job file.

    Kubernetes' own workloads are read, too: a Job becomes a job with one worker (an Indexed Job, with several);
    ReplicationControllers, Deployments, ReplicaSets, StatefulSets and Jobs for the tasks of one cluster, in one
    file or in several, become one job, without their Services.

    Comments at the top of the output list what was guessed and what the new form cannot express.

    \b
    Examples:
      tfyard convert old.yaml --to v1
      tfyard convert ps.yaml worker.yaml ps-srv.yaml worker-srv.yaml --to jobfile -o job.yaml
    """
    if not force:
        files.refuse_input(output, names, "--force overwrites it")
    documents = _read(names)
    texts = [_convert(document, to) for document in documents if formats.is_job(document.data)]
    others = [document for document in documents if not formats.is_job(document.data)]
    if not texts:
        texts = [*_from_workloads(load(others, allow_missing=allow_missing), others, to)]
        others = []
    if not texts:
        refuse_sweep(documents, names[0])
        raise Usage(
            f"{', '.join(map(files.display_name, names))}: no TFJob, no job file and no workload in it"
        )
    for document in others:
        click.echo(files.passed_over(document), err=True)
    _write("---\n".join(texts), to, output)


def _convert(document: formats.Document, to: formats.Version) -> str:
    job = files.load(document)
    if note := why_not_served(job.api_version):
        click.echo(f"{document.name}: note: {note}", err=True)
    return formats.dump(job, to).text()


def _write(text: str, to: formats.Version, output: str | None) -> None:
    if output is None or output == "-":
        files.print_text(text)
        return
    files.write_text(output, text)
    if to == "jobfile":
        editor.write_schema(output)


def _read(names: Sequence[str]) -> list[formats.Document]:
    """Read the documents of all files; the problems of every file are reported."""
    documents, failed = [], False
    for name in names:
        try:
            documents += files.read_documents(name)
        except Invalid as error:
            problems.report(error.problems, error.text, error.name)
            failed = True
    if failed:
        raise Invalid(())
    return documents


def _from_workloads(
    converted: list[Converted], documents: list[formats.Document], to: formats.Version
) -> Iterator[str]:
    """Convert workloads: yields the text of each job, or reports the problems of all."""
    for document in documents:
        own = [problem for job in converted for owner, problem in job.problems if owner is document]
        problems.report(own, document, document.name)
    if any(job.has_errors for job in converted):
        raise Invalid(())
    for job in converted:
        dumped = formats.dump(job.one, to)
        changes = [*job.said, *([f"not converted, keep: {', '.join(job.kept)}"] if job.kept else [])]
        for sentence in changes:
            click.echo(f"tfyard: changed: {problems.escaped(sentence)}", err=True)
        changed = "".join(comment(f"changed: {sentence}") for sentence in changes)
        yield replace(dumped, heading=dumped.heading + changed).text()
