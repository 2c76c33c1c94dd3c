"""The exception tree. Each error knows its exit code; `cli.main` only uses it.

TfyardError         exit 1   anything that a user may see as one line instead of a traceback
├── Invalid         exit 1   the user's file is wrong; carries every Problem in it
├── Usage           exit 2   the command line is wrong: options, arguments, missing files
├── NoSuchJob       exit 1   no job, or run on this machine, has this name
├── NotPossible     exit 1   the job, or its place, does not allow this action
├── NotRunning      exit 1   a task that must run for this does not run
└── Interrupted     exit 130 the user pressed Ctrl-C
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tfyard.formats import Document
    from tfyard.model.problem import Problem


class TfyardError(Exception):
    """Base class of all errors of tfyard: catch it to catch them all."""

    exit_code: ClassVar[int] = 1


class Invalid(TfyardError):
    """The input was refused. The error carries the problems and, where known, the text that they are about (the
    document, or the lines of a text that could not be parsed) and its name: each interface formats them itself."""

    def __init__(
        self, problems: Sequence[Problem], text: Document | Sequence[str] = (), name: str = ""
    ) -> None:
        self.problems = tuple(problems)
        self.text, self.name = text, name
        super().__init__(self.problems, text, name)

    def __str__(self) -> str:
        """One line per problem: position, field, message, fix."""
        return "\n".join(map(self._line, self.problems))

    def _line(self, problem: Problem) -> str:
        from tfyard.model.problem import format_path  # brings msgspec: 15 ms that --help does not need

        at = problem.position
        position = f"{self.name}:{at.line}:{at.column}" if at else self.name
        message = f"{problem.message}; {problem.fix}" if problem.fix else problem.message
        return ": ".join(part for part in (position, format_path(problem.path), message) if part)


class Usage(TfyardError):
    """The command line itself is wrong; shells and scripts expect 2 for that."""

    exit_code = 2


class NoSuchJob(TfyardError):
    """No job, or run on this machine, has this name; the command line is right."""


class NotPossible(TfyardError):
    """The action is not possible for this job now, or where it runs, or not allowed for this user."""


class NotRunning(TfyardError):
    """The task has no running program now."""


class Interrupted(TfyardError):
    """The user pressed Ctrl-C. The text says what was done and what was not. Shells report 128 + SIGINT."""

    exit_code = 130
