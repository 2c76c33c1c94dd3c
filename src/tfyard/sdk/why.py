"""The answer of `Run.why()`, and the errors of `Run.wait()`."""

from datetime import UTC, datetime

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.overview import why_text
from tfyard.overview.evidence import Evidence
from tfyard.overview.waiting import DELETED_CODE, TIMEOUT_CODE
from tfyard.overview.why import Answer, explain


class Why(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Why a job waits or has failed. `print(why)` prints what the terminal prints."""

    code: int
    """Exit code of `tfyard why`: 0 nothing is wrong; 1 the job has failed; 3 it waits; 4 the cause is unknown."""
    state: str
    """State of the job: fine, failed, waiting or unknown."""
    cause: str
    """The cause, as one sentence."""
    kind: str = ""
    """A stable word for programs: image-pull, no-room, taint, …; empty if no cause is known."""
    fix: str = ""
    """The fix: a command, or a line of the job file."""
    tasks: tuple[str, ...] = ()
    """The affected tasks."""
    text: str = ""
    """The whole output of `tfyard why`, with evidence and further causes."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def why(evidence: Evidence) -> Why:
    now = datetime.now(UTC)
    return of_answer(explain(evidence, now), now)


def of_answer(answer: Answer, now: datetime) -> Why:
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
    """The job that was waited for has failed. The text of this error is `why`."""

    def __init__(self, name: str, code: int, why: Why) -> None:
        super().__init__(name, code, why)
        self.name, self.code, self.why = name, code, why

    def __str__(self) -> str:
        return self.why.text

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback, which would only show code of tfyard."""
        return [f"JobFailed: {self.name}: {self}"]


class JobDeleted(TfyardError):
    """The job that was waited for was deleted."""

    exit_code = DELETED_CODE


class WaitTimeout(TfyardError, TimeoutError):
    """The wait has timed out; the job continues."""

    exit_code = TIMEOUT_CODE
