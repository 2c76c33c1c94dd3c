"""Long lines on a terminal. It would wrap them into its first column, where only tfyard writes; so they are
wrapped here, below their task or indented: nothing that a program prints can look as if tfyard had said it."""

import os
import sys

INDENT = "    "


def columns() -> int | None:
    """Of the terminal; None: standard output is none, and lines may have any length."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80 if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def wrapped(line: str, room: int) -> list[str]:
    """Rows of at most so many columns."""
    line = line.expandtabs()
    if len(line) * 2 <= room:  # a character has two columns at most
        return [line]
    from rich.cells import chop_cells  # slow to import, and most lines are short

    return chop_cells(line, max(room, 2)) or [""]


def hanging(text: str, room: int | None) -> str:
    """A message, all but its first row indented. What it quotes from a log starts in a line of its own, or follows
    our own words in the first."""
    first, *rest = text.split("\n")
    if room is None:
        return "\n".join([first, *(INDENT + line for line in rest)])
    head, *more = wrapped(first, room)
    lines = ["".join(more).lstrip(), *rest] if more else rest
    return "\n".join([head, *(INDENT + row for line in lines for row in wrapped(line, room - len(INDENT)))])
