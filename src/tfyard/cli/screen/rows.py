"""Wraps long lines for a terminal, below their task or indented. The terminal itself would wrap them into its
first column, where only tfyard writes: output of a program must not look like a message of tfyard."""

import os
import sys
from collections.abc import Iterable, Iterator

INDENT = "    "


def columns() -> int | None:
    """Width of the terminal; None if standard output is no terminal, and lines may have any length."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80 if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def wrapped(line: str, room: int, later: int | None = None) -> list[str]:
    """The rows of a line, each of at most `room` columns, or `later` from the second on. They end between words;
    only a word that is longer than a row is divided."""
    line = line.expandtabs()
    if len(line) * 2 <= room:  # a character has two columns at most
        return [line]
    rows: list[str] = []
    start = 0
    while start < len(line) or not rows:
        row = _row(line, start, max(room, 2))
        rows.append(row.rstrip(" ") if start + len(row) < len(line) else row)
        start += len(row)
        room = room if later is None else later
    return rows


def _row(line: str, start: int, room: int) -> str:
    """The part of a line from here on that fits into a row, with the spaces behind it."""
    from rich.cells import chop_cells  # 10 ms, and most lines are short

    row = (chop_cells(line[start : start + 2 * room], room) or [""])[0]
    end = start + len(row)
    if end < len(line) and line[end] != " ":
        word = row.rfind(" ") + 1
        rest = line[start + word : start + word + room + 1]
        is_short = " " in rest or len(rest) <= room
        if row[:word].strip() and is_short:
            end = start + word
    while end < len(line) and line[end] == " ":
        end += 1
    return line[start:end]


def hanging(text: str, room: int | None) -> str:
    """A message with all rows but the first indented, so that quoted log lines never start in the first column."""
    first, *others = text.split("\n")
    if room is None:
        return "\n".join([first, *(INDENT + line for line in others)])
    below = room - len(INDENT)
    head, *more = wrapped(first, room, below)
    return "\n".join([head, *(INDENT + row for row in (*more, *_each(others, below)))])


def _each(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in lines:
        yield from wrapped(line, room)
