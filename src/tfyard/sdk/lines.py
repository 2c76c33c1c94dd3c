"""Log lines as values, and how a program chooses among them."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from tfyard.formats.loglines import without_colours
from tfyard.node.logs import LONGEST_LINE, clean_lines
from tfyard.overview.log_lines import Lines, LogEvent, Said, Wanted, attempt_of, chosen
from tfyard.sdk.durations import seconds

LOG = logging.getLogger("tfyard")
RESTART, ALL = "restart", "all"

Names = str | Sequence[str]


class Line(Struct, frozen=True):
    """A line that a task's program has written."""

    task: str
    attempt: int
    """Which start of the task it is from, counted from 1."""
    text: str
    restart: int = 0
    """On a cluster: which restart in place of that attempt."""
    time: datetime | None = None
    """When it was written; None for a run of an older tfyard on this machine, which kept no times."""

    @property
    def role(self) -> str:
        return self.task.rpartition("-")[0]

    def __str__(self) -> str:
        return self.text


class Choice(Struct, frozen=True, kw_only=True):
    """The arguments of `Run.logs`."""

    role: Names = ()
    task: Names = ()
    tail: int | None = None
    since: str | float | timedelta = ""
    attempt: int | str = ""

    def wanted(self, tasks: Sequence[str]) -> Wanted:
        attempt, restart = attempt_of("" if self.attempt == ALL else str(self.attempt))
        since = (
            None
            if self.since in ("", RESTART)
            else datetime.now(UTC) - timedelta(seconds=seconds(self.since))
        )
        return Wanted(
            tasks=chosen((*_names(self.role), *_names(self.task)), tasks),
            tail=self.tail,
            since=since,
            since_restart=self.since == RESTART,
            attempt=attempt,
            restart=restart,
            all_attempts=self.attempt == ALL,
        )


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def lines(events: Iterable[LogEvent | None]) -> Iterator[Line | None]:
    """What tfyard says in between (a task was restarted, lines are missing) goes to the logger `tfyard`."""
    for event in events:
        if isinstance(event, Lines):
            yield from _lines(event)
        elif isinstance(event, Said):
            who = f"{event.start.name}: " if event.start else ""
            LOG.log(logging.WARNING if event.kind == "gap" else logging.INFO, "%s%s", who, event.text)
        else:
            yield None


def _lines(event: Lines) -> Iterator[Line]:
    start = event.start
    texts = without_colours(clean_lines(b"\n".join(event.texts), LONGEST_LINE)).split("\n")
    stamps = event.stamps or [b""] * len(texts)
    for text, stamp in zip(texts if event.texts else (), stamps, strict=True):
        at = datetime.fromisoformat(stamp.decode()) if stamp else None
        yield Line(start.task, start.attempt, text, start.restart, at)
