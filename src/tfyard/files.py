"""Files by the names that users give: a path, or `-` for standard input. Nothing here prints."""

import sys
from typing import TYPE_CHECKING

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.model import Job, Problem

if TYPE_CHECKING:
    from pathlib import Path


def read_bytes(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read()
    except FileNotFoundError:
        raise Usage(f"{name}: file not found") from None
    except IsADirectoryError:
        raise Usage(f"{name} is a folder; name the file in it") from None
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def parse(data: bytes, name: str) -> list[formats.Document]:
    """All documents of a file; the items of a List count as documents."""
    shown = display_name(name)
    try:
        return [part for document in formats.read(data, shown) for part in formats.split(document)]
    except Invalid as error:
        raise Invalid(error.problems, formats.split_lines(data), shown) from None


def read_documents(name: str) -> list[formats.Document]:
    return parse(read_bytes(name), name)


def load(document: formats.Document) -> tuple[Job, tuple[Problem, ...]]:
    """The job and the warnings about it; Invalid with every problem if there is an error among them."""
    checked = formats.check(document)
    if checked.errors or checked.job is None:
        raise Invalid(checked.problems, document, document.name)
    return checked.job, checked.problems


def write_text(name: str, text: str) -> None:
    """All of it or nothing: a reader never sees half a file, and a failure leaves the old one."""
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
    """As text that can be shown: the name of a file need not be valid UTF-8."""
    return "<stdin>" if name == "-" else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
