"""Reading what the user names: a path, or `-` for standard input."""

import sys

from tfyard import formats
from tfyard.errors import Usage


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


def read_documents(name: str) -> list[formats.Document]:
    """All documents of a file; the items of a List count as documents."""
    documents = formats.read(read_bytes(name), display_name(name))
    return [part for document in documents for part in formats.split(document)]


def read_jobs(name: str) -> list[formats.Document]:
    """Those documents that are jobs; at least one, or the user named the wrong file."""
    documents = [document for document in read_documents(name) if formats.is_job(document.data)]
    if not documents:
        raise Usage(f"{display_name(name)}: no TFJob and no tfyard job file in it")
    return documents


def write_text(name: str, text: str) -> None:
    try:
        with open(name, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def display_name(name: str) -> str:
    return "<stdin>" if name == "-" else name
