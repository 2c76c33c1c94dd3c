"""The answer of `Run.why()`, and the errors of `Run.wait()`."""

from datetime import UTC, datetime

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.overview import why_text
from tfyard.overview.evidence import Evidence
from tfyard.overview.waiting import DELETED_CODE, TIMEOUT_CODE
from tfyard.overview.why import explain


class Why(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Why a job waits or has failed. `print(why)` prints what the terminal prints."""

    code: int
    """0 nothing is wrong; 1 it has failed; 3 it waits; 4 the cause is not known."""
    state: str
    """fine, failed, waiting or unknown."""
    cause: str
    """One sentence."""
    kind: str = ""
    """A stable word for programs: image-pull, no-room, taint, …; empty if no cause is known."""
    fix: str = ""
    """A command, or a line of the job file."""
    tasks: tuple[str, ...] = ()
    """Which tasks it is about."""
    text: str = ""
    """All of it, with the evidence and what else is true."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def why(evidence: Evidence) -> Why:
    now = datetime.now(UTC)
    answer = explain(evidence, now)
    first = next((cause for cause in answer.causes if not cause.is_past), None)
    return Why(
        code=answer.code,
        state=answer.state,
        cause=answer.sentence,
        kind=first.kind if first else "",
        fix=first.fix if first else "",
        tasks=first.tasks if first else (),
        text="\n".join(why_text.lines(answer, now)),
    )


class JobFailed(TfyardError):
    """A job that was waited for has failed. Its text is `why`."""

    def __init__(self, name: str, code: int, why: Why) -> None:
        super().__init__(name, code, why)
        self.name, self.code, self.why = name, code, why

    def __str__(self) -> str:
        return self.why.text

    def _render_traceback_(self) -> list[str]:
        """IPython shows this in place of a traceback, which would be of our own code."""
        return [f"JobFailed: {self.name}: {self}"]


class JobDeleted(TfyardError):
    """A job that was waited for is gone."""

    exit_code = DELETED_CODE


class WaitTimeout(TfyardError, TimeoutError):
    """The time of a wait is over; the job goes on."""

    exit_code = TIMEOUT_CODE
