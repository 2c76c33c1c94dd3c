"""`tfyard convert`: a job of any version as TFJob v1 or as a job file."""

import click

from tfyard import formats
from tfyard.cli import editor, files, problems
from tfyard.errors import Invalid
from tfyard.model import Job


@click.command("convert")
@click.argument("name", metavar="FILE")
@click.option(
    "--to", type=click.Choice(["v1", "jobfile"]), default="v1", help="What to write.", show_default=True
)
@click.option("-o", "--output", metavar="FILE", help="Write here instead of to standard output.")
def command(name: str, to: formats.Version, output: str | None) -> None:
    """Rewrite a job of any version as TFJob v1 or as a tfyard job file.

    What the new form cannot say stands in comments at its head.
    """
    texts = [formats.dump(_load(document), to).text() for document in files.read_jobs(name)]
    text = "---\n".join(texts)
    if output is None:
        click.echo(text, nl=False)
        return
    files.write_text(output, text)
    if to == "jobfile":
        editor.write_schema(output)


def _load(document: formats.Document) -> Job:
    checked = formats.check(document)
    problems.report(checked.problems, document, document.name)
    if checked.errors or checked.job is None:
        raise Invalid(())
    return checked.job
