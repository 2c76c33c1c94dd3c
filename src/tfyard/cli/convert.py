"""`tfyard convert`: a job of any version as TFJob v1 or as a job file."""

import click

from tfyard import formats
from tfyard.cli import editor, files


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
    texts = [formats.dump(files.load(document), to).text() for document in files.read_jobs(name)]
    text = "---\n".join(texts)
    if output is None or output == "-":
        click.echo(text.encode(), nl=False)  # UTF-8 whatever the terminal's: it will be a file's
        return
    files.write_text(output, text)
    if to == "jobfile":
        editor.write_schema(output)
