"""Wraps long lines for a terminal, below their task or indented. The terminal itself would wrap them into its
first column, where only tfyard writes: output of a program must not look like a message of tfyard."""

import os
import sys

INDENT = "    "


def columns() -> int | None:
    """Width of the terminal; None if standard output is no terminal, and lines may have any length."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80 if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def wrapped(line: str, room: int) -> list[str]:
    """The rows of a line, each of at most `room` columns."""
    line = line.expandtabs()
    if len(line) * 2 <= room:  # a character has two columns at most
        return [line]
    from rich.cells import chop_cells  # 10 ms, and most lines are short

    return chop_cells(line, max(room, 2)) or [""]


def hanging(text: str, room: int | None) -> str:
    """A message with all rows but the first indented, so that quoted log lines never start in the first column."""
    first, *others = text.split("\n")
    if room is None:
        return "\n".join([first, *(INDENT + line for line in others)])
    head, *more = wrapped(first, room)
    lines = ["".join(more).lstrip(), *others] if more else others
    return "\n".join([head, *(INDENT + row for line in lines for row in wrapped(line, room - len(INDENT)))])
