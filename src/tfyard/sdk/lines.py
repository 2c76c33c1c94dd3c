"""Log lines as values, and the arguments that choose among them."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from tfyard.logs.lines import Lines, LogEvent, LogSelection, Remark, attempt_of, chosen, time_of
from tfyard.overview.waiting import WaitResult
from tfyard.sdk.durations import seconds

LOG = logging.getLogger("tfyard")
RESTART, ALL = "restart", "all"

Names = str | Sequence[str]


class Line(Struct, frozen=True):
    """A line that a task's program has written."""

    task: str
    attempt: int
    """Number of the start of the task, from 1."""
    text: str
    restart: int = 0
    """Number of the restart in place within the attempt; only on a cluster."""
    time: datetime | None = None
    """When it was written; None for runs of older versions, which kept no times."""

    @property
    def role(self) -> str:
        return self.task.rpartition("-")[0]

    def __str__(self) -> str:
        return self.text


class LineChoice(Struct, frozen=True, kw_only=True):
    """The arguments of `Run.logs`."""

    role: Names = ()
    task: Names = ()
    tail: int | None = None
    since: str | float | timedelta = ""
    attempt: int | str = ""

    def wanted(self, tasks: Sequence[str]) -> LogSelection:
        attempt, restart = attempt_of("" if self.attempt == ALL else str(self.attempt))
        since = (
            None
            if self.since in ("", RESTART)
            else datetime.now(UTC) - timedelta(seconds=seconds(self.since, "since", ", or restart"))
        )
        return LogSelection(
            tasks=chosen((*_names(self.role), *_names(self.task)), tasks),
            tail=self.tail,
            since=since,
            since_restart=self.since == RESTART,
            attempt=attempt,
            restart=restart,
            all_attempts=self.attempt == ALL,
        )


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def lines(events: Iterable[LogEvent | WaitResult | None]) -> Iterator[Line | None]:
    """The lines of log events. Messages of tfyard (a task was restarted, lines are missing) are logged."""
    for event in events:
        if isinstance(event, Lines):
            yield from _lines(event)
        elif isinstance(event, Remark):
            source = f"{event.start.name}: " if event.start else ""
            LOG.log(logging.WARNING if event.kind == "gap" else logging.INFO, "%s%s", source, event.text)
        else:
            yield None


def _lines(event: Lines) -> Iterator[Line]:
    start = event.start
    for stamp, text in event.rows():
        yield Line(start.task, start.attempt, text, start.restart, time_of(stamp))
