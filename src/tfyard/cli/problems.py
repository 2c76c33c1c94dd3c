"""Problems as a compiler prints them: with the source line and a caret under the column."""

from collections.abc import Iterable, Sequence

import click
import msgspec

from tfyard import formats
from tfyard.model import Problem, format_path


def report(problems: Iterable[Problem], text: formats.Document | Sequence[str] = (), name: str = "") -> None:
    for problem in problems:
        click.echo(formats.format_problem(problem, text, name), err=True)


def _plain(value: object) -> object:
    """JSON has no word for what YAML calls .nan and .inf, and a whole pod would drown the report."""
    is_simple = isinstance(value, str | bool | int | None) or (
        isinstance(value, float) and value - value == 0
    )
    return (
        value if is_simple else f"a {type(value).__name__}" if isinstance(value, dict | list) else str(value)
    )


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
