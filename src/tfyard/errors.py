"""The exception tree. Each error knows its exit code; `cli.main` only uses it.

TfyardError         exit 1   anything that a user may see as one line instead of a traceback
├── Invalid         exit 1   what the user wrote is wrong; carries every Problem found
├── Usage           exit 2   what the user asked for is wrong: options, arguments, missing files
└── Interrupted     exit 130 by Ctrl-C
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tfyard.formats import Document
    from tfyard.model.problem import Problem


class TfyardError(Exception):
    """Base of all our errors: catch this one to catch them all."""

    exit_code: ClassVar[int] = 1


class Invalid(TfyardError):
    """Input that was refused. It carries the problems, and where known the text that they are about (the
    document, or the lines of what could not be read) and its name, because each interface shows them its own
    way."""

    def __init__(
        self, problems: Sequence[Problem], text: Document | Sequence[str] = (), name: str = ""
    ) -> None:
        self.problems = tuple(problems)
        self.text, self.name = text, name
        super().__init__(self.problems, text, name)

    def __str__(self) -> str:
        """A line for each: position, field, what is wrong, the fix."""
        return "\n".join(map(self._line, self.problems))

    def _line(self, problem: Problem) -> str:
        from tfyard.model.problem import format_path

        at = problem.position
        position = f"{self.name}:{at.line}:{at.column}" if at else self.name
        told = f"{problem.message}; {problem.fix}" if problem.fix else problem.message
        return ": ".join(part for part in (position, format_path(problem.path), told) if part)


class Usage(TfyardError):
    """The command line itself is wrong; shells and scripts expect 2 for that."""

    exit_code = 2


class Interrupted(TfyardError):
    """By Ctrl-C; its text says what was done, and what was not. Shells report 128 + SIGINT."""

    exit_code = 130
