"""Reading what the user names: a path, or `-` for standard input."""

import sys

import click

from tfyard import formats
from tfyard.cli import problems
from tfyard.errors import Invalid, Usage
from tfyard.model import Job


def read_bytes(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read()
    except FileNotFoundError:
        raise Usage(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise Usage(f"{name} is a folder; name the file in it") from None
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def parse(data: bytes, name: str) -> list[formats.Document]:
    """All documents of a file; the items of a List count as documents."""
    documents = formats.read(data, display_name(name))
    return [part for document in documents for part in formats.split(document)]


def read_documents(name: str) -> list[formats.Document]:
    """As `parse`, with problems shown here, where the text is at hand."""
    data = read_bytes(name)
    try:
        return parse(data, name)
    except Invalid as error:
        problems.report(error.problems, formats.split_lines(data), display_name(name))
        raise Invalid(()) from None


def read_jobs(name: str) -> list[formats.Document]:
    """Those documents that are jobs; at least one, or the user named the wrong file."""
    documents = read_documents(name)
    jobs = [document for document in documents if formats.is_job(document.data)]
    if not jobs:
        raise Usage(f"{display_name(name)}: no TFJob and no tfyard job file in it")
    for document in documents:
        if document not in jobs:
            click.echo(passed_over(document), err=True)
    return jobs


def load(document: formats.Document) -> Job:
    """The job, its problems told with the lines that they are about."""
    checked = formats.check(document)
    problems.report(checked.problems, document, document.name)
    if checked.errors or checked.job is None:
        raise Invalid(())
    return checked.job


def passed_over(document: formats.Document) -> str:
    data = document.data
    kind = str(data.get("kind")) if isinstance(data, dict) else f"a {type(data).__name__}"
    return f"{document.name}: passed over: {kind[:60] if kind.isprintable() else ascii(kind)[:60]} is no job"


def write_text(name: str, text: str) -> None:
    try:
        with open(name, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def display_name(name: str) -> str:
    """As a terminal can show it: a file's name need not be text."""
    return "<stdin>" if name == "-" else click.format_filename(name)
