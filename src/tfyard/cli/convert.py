"""`tfyard convert`: a job of any version as TFJob v1 or as a job file."""

from collections.abc import Sequence

import click
from msgspec.structs import replace

from tfyard import formats
from tfyard.cli import editor, files, problems
from tfyard.errors import Invalid, Usage
from tfyard.formats import replication_controllers
from tfyard.formats.tfjob.versions import why_not_served
from tfyard.formats.yaml.source import locate


@click.command("convert")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--to", type=click.Choice(["v1", "jobfile"]), default="v1", help="What to write.", show_default=True
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output.")
@click.option("--force", is_flag=True, help="Overwrite the file that is read.")
def command(names: tuple[str, ...], to: formats.Version, output: str | None, force: bool) -> None:
    """Rewrite a job of any version as TFJob v1 or as a tfyard job file.

    A cluster written by hand (a ReplicationController and a Service per task, in one file or in several)
    becomes one job. Comments at the top of the output list what the new form cannot express.
    """
    if not force:
        files.refuse_input(output, names, "--force overwrites it")
    documents = _read(names)
    texts = [_convert(one, to) for one in documents if formats.is_job(one.data)]
    others = [one for one in documents if not formats.is_job(one.data)]
    if any(replication_controllers.is_controller(one.data) for one in others):
        texts.append(_by_hand(others, to))
    elif not texts:
        raise Usage(f"{', '.join(map(files.display_name, names))}: no TFJob and no tfyard job file in it")
    else:
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
    """All documents of all files; problems are reported for every file, not only for the first."""
    found, failed = [], False
    for name in names:
        try:
            found += files.read_documents(name)
        except Invalid as error:
            problems.report(error.problems, error.text, error.name)
            failed = True
    if failed:
        raise Invalid(())
    return found


def _by_hand(documents: list[formats.Document], to: formats.Version) -> str:
    converted = replication_controllers.load(documents)
    for document in documents:
        found = [problem for owner, problem in converted.problems if owner is document]
        problems.report(locate(found, document), document, document.name)
    if converted.job is None or any(problem.severity == "error" for _, problem in converted.problems):
        raise Invalid(())
    dumped = formats.dump(converted.job, to)
    for sentence in converted.said:
        click.echo(f"tfyard: changed: {sentence}", err=True)
    changed = "".join(f"# changed: {sentence}\n" for sentence in converted.said)
    return replace(dumped, heading=dumped.heading + changed).text()
