"""Reading what the user names: a path, or `-` for standard input."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tfyard import formats
from tfyard.errors import Usage


def read_bytes(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
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
    """All of it or nothing: a reader never meets half a file, and a failure leaves the old one."""
    path = Path(name)
    if path.exists() and not path.is_file():
        _try_to(name, lambda: path.write_text(text, encoding="utf-8"))  # a pipe, or /dev/stdout
        return
    path = path.resolve()
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _try_to(name, lambda: draft.write_text(text, encoding="utf-8"))
        _try_to(name, lambda: draft.replace(path))
    finally:
        draft.unlink(missing_ok=True)


def _try_to(name: str, act: Callable[[], object]) -> None:
    try:
        act()
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def display_name(name: str) -> str:
    return "<stdin>" if name == "-" else name
