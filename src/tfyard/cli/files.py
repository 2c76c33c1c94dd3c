"""Reading what the user names: a path, or `-` for standard input."""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tfyard import formats
from tfyard.cli import problems
from tfyard.errors import Invalid, Usage
from tfyard.formats.declarations.reading import name_of
from tfyard.model import Job

if TYPE_CHECKING:
    from pathlib import Path


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
    return f"{document.name}: passed over: {_why(document.data)}"


def _why(data: object) -> str:
    if not isinstance(data, dict):
        return f'this is {name_of(data)}, not a job: a job file is a mapping such as "name: mnist"'
    if data.get("kind") is None:
        return "it has no kind; that of a job is TFJob"
    kind = str(data["kind"])
    shown = kind[:60] if kind.isprintable() else ascii(kind)[:60]
    return f"{shown} is not a kind that tfyard reads; TFJob is"


def print_text(text: str) -> None:
    """UTF-8 whatever the terminal's encoding: it will be a file's. A stream of text only takes it as text."""
    click.echo(text.encode() if hasattr(sys.stdout, "buffer") else text, nl=False)


def refuse_input(output: str | None, names: Iterable[str], way_out: str) -> None:
    """What is being read is not written over, by whatever name it is called: there is no other copy of it."""
    for name in names:
        try:
            is_same = output is not None and os.path.samefile(output, name)  # noqa: PTH121
        except (OSError, ValueError):  # one of them is not there, or is `-`
            continue
        if is_same:
            raise Usage(f"-o {output} is the file that is read; {way_out}")


def write_output(name: str | None, text: str) -> None:
    """Into the file of `--output`, or to standard output."""
    if name is None:
        print_text(text)
    else:
        write_text(name, text)


def write_text(name: str, text: str) -> None:
    """All of it or nothing: a reader never meets half a file, and a failure leaves the old one."""
    from pathlib import Path  # slow to import, and most commands write nothing

    path = Path(name)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a pipe, or /dev/stdout
        else:
            _write_whole(path.resolve(), text)
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def _write_whole(path: "Path", text: str) -> None:
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def display_name(name: str) -> str:
    """As a terminal can show it: a file's name need not be text."""
    return "<stdin>" if name == "-" else click.format_filename(name)
