"""The one exception tree. Whoever raises knows the exit code; `cli.main` only obeys it.

TfyardError         exit 1   anything that a user may see as one line instead of a traceback
├── Invalid         exit 1   what the user wrote is wrong; carries every Problem found
└── Usage           exit 2   what the user asked for is wrong: options, arguments, missing files
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tfyard.model.problem import Problem


class TfyardError(Exception):
    """Base of all our errors: catch this one to catch them all."""

    exit_code: ClassVar[int] = 1


class Invalid(TfyardError):
    """Input that was refused. It carries problems, not text, since each face shows them its own way."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


class Usage(TfyardError):
    """The command line itself is wrong; shells and scripts expect 2 for that."""

    exit_code = 2
