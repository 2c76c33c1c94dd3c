"""`tfyard convert`: a job of any version as TFJob v1 or as a job file."""

from collections.abc import Sequence

import click
from msgspec.structs import replace

from tfyard import formats
from tfyard.cli import editor, files, problems
from tfyard.errors import Invalid, Usage
from tfyard.formats import legacy
from tfyard.model import Job


@click.command("convert")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--to", type=click.Choice(["v1", "jobfile"]), default="v1", help="What to write.", show_default=True
)
@click.option("-o", "--output", metavar="FILE", help="Write here instead of to standard output.")
def command(names: tuple[str, ...], to: formats.Version, output: str | None) -> None:
    """Rewrite a job of any version as TFJob v1 or as a tfyard job file.

    A cluster written by hand (a ReplicationController and a Service per task, in one file or in several)
    becomes one job. What the new form cannot say stands in comments at its head.
    """
    documents = _read(names)
    texts = [formats.dump(_load(one), to).text() for one in documents if formats.is_job(one.data)]
    if any(legacy.is_controller(one.data) for one in documents):
        texts.append(_by_hand([one for one in documents if not formats.is_job(one.data)], to))
    if not texts:
        raise Usage(f"{', '.join(map(files.display_name, names))}: no TFJob and no tfyard job file in it")
    _write("---\n".join(texts), to, output)


def _write(text: str, to: formats.Version, output: str | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    files.write_text(output, text)
    if to == "jobfile":
        editor.write_schema(output)


def _read(names: Sequence[str]) -> list[formats.Document]:
    """All documents of all files; what cannot be read is told for every file, not only for the first."""
    found, failed = [], False
    for name in names:
        data = files.read_bytes(name)
        try:
            documents = formats.read(data, files.display_name(name))
        except Invalid as error:
            problems.report(error.problems, formats.source.split_lines(data), files.display_name(name))
            failed = True
            continue
        found += [part for document in documents for part in formats.split(document)]
    if failed:
        raise Invalid(())
    return found


def _load(document: formats.Document) -> Job:
    checked = formats.check(document)
    problems.report(checked.problems, document, document.name)
    if checked.errors or checked.job is None:
        raise Invalid(())
    return checked.job


def _by_hand(documents: list[formats.Document], to: formats.Version) -> str:
    converted = legacy.load(documents)
    for document, problem in converted.problems:
        problems.report([problem], document, document.name)
    if converted.job is None or any(problem.severity == "error" for _, problem in converted.problems):
        raise Invalid(())
    dumped = formats.dump(converted.job, to)
    for sentence in converted.said:
        click.echo(f"tfyard: changed: {sentence}", err=True)
    changed = "".join(f"# changed: {sentence}\n" for sentence in converted.said)
    return replace(dumped, heading=dumped.heading + changed).text()
