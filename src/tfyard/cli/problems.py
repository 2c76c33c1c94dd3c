"""Problems as a compiler prints them: position, message, source line with a caret, fix.

The form `file:line:column: error: …` is the one that editors and CI systems turn into links. What a user wrote
may contain control characters, which a terminal would obey; they are escaped.
"""

import unicodedata
from collections.abc import Iterable, Sequence

import click
import msgspec

from tfyard import formats
from tfyard.formats.yaml.source import locate
from tfyard.model import Position, Problem, format_path
from tfyard.model.url_credentials import without_credentials

WIDTH = 100
_ELLIPSIS = "…"


def report(problems: Iterable[Problem], text: formats.Document | Sequence[str] = (), name: str = "") -> None:
    for problem in problems:
        click.echo(format_problem(problem, text, name), err=True)


def as_json(problem: Problem, name: str) -> dict[str, object]:
    position = problem.position
    return {
        "file": name,
        "line": position.line if position else None,
        "column": position.column if position else None,
        "path": format_path(problem.path),
        "severity": problem.severity,
        "message": problem.message,
        "fix": problem.fix,
        **({"value": _plain(problem.value)} if problem.value is not msgspec.UNSET else {}),
    }


def _plain(value: object) -> object:
    """The value for a JSON report: JSON has neither .nan nor .inf, and a whole pod would be too long."""
    is_simple = isinstance(value, str | bool | int | None) or (
        isinstance(value, float) and value - value == 0
    )
    return (
        value if is_simple else f"a {type(value).__name__}" if isinstance(value, dict | list) else str(value)
    )


def format_problem(problem: Problem, text: formats.Document | Sequence[str], name: str = "") -> str:
    """`text` is the document, or for text that could not be read, its lines (`formats.split_lines`)."""
    if isinstance(text, formats.Document):
        (problem,) = locate((problem,), text)
        name = name or text.name
    rows = [_headline(problem, name)]
    if problem.position:
        rows += _excerpt(_line(text, problem.position.line), problem.position.column)
    if problem.fix:
        rows.append(f"  fix: {escaped(problem.fix)}")
    return "\n".join(rows)


def _headline(problem: Problem, name: str) -> str:
    where = _where(name, problem.position)
    parts = [where, problem.severity, format_path(problem.path), problem.message]
    return ": ".join(escaped(part) for part in parts if part)


def _where(name: str, position: Position | None) -> str:
    return f"{name}:{position.line}:{position.column}" if position else name


def _line(text: formats.Document | Sequence[str], line: int) -> str:
    if isinstance(text, formats.Document):
        return text.source_line(line)
    return text[line - 1] if 0 < line <= len(text) else ""


def _excerpt(line: str, column: int) -> list[str]:
    """The source line and a caret under the column; for a long line, the part around it."""
    if not line.strip():
        return []
    line = without_credentials(line)
    shown, before = _window(line, min(column - 1, len(line)))
    return [f"    {shown}", f"    {_blanks(shown[:before])}^"]


def _window(line: str, offset: int) -> tuple[str, int]:
    """The visible part of a line, and how many of its characters are before the offset."""
    start = 0 if offset < WIDTH - 10 else offset - WIDTH // 2
    shown = "".join(
        character if character.isprintable() else " " for character in line[start : start + WIDTH]
    )
    head = _ELLIPSIS if start else ""
    tail = _ELLIPSIS if start + WIDTH < len(line) else ""
    return head + shown + tail, len(head) + offset - start


def _blanks(text: str) -> str:
    """Blanks as wide as the text on a terminal: Chinese characters take two columns, combining accents none."""
    return "".join(_blank(character) for character in text)


def _blank(character: str) -> str:
    if unicodedata.combining(character):
        return ""
    return "  " if unicodedata.east_asian_width(character) in "WF" else " "


def escaped(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
