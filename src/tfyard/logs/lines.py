"""Logs of a job as values, wherever it runs: lines of its programs, remarks of tfyard between them, and the choice
of lines."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.logs.terminal_text import LONGEST_LINE, plain_lines
from tfyard.model.spelling import did_you_mean

TRACEBACK = b"Traceback (most recent call last):"
LINKS = (b"During handling of the above exception", b"The above exception was the direct cause")
LONGEST_TRACEBACK = 500
"""Maximum number of lines of a traceback that are kept until its end is known."""
SECOND, MILLISECOND = 19, 23
"""Length of a timestamp up to the second and up to the millisecond, in bytes."""


class Start(Struct, frozen=True):
    """One start of a task's program, or of an init container because of which the program has not started."""

    task: str
    attempt: int = 1
    """Number of the task's pod, counted from 1."""
    restart: int = 0
    """Number of the restart in place of that pod's program; 0: its first start."""
    container: str = ""
    """The init container; empty: the program."""

    def __lt__(self, other: "Start") -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[object, ...]:
        return self.task, self.attempt, not self.container, self.restart

    @property
    def name(self) -> str:
        """`worker-1`; `worker-1#2` in its second pod; `worker-1#2.1` after a restart in that pod;
        `worker-1/prepare` of its init container `prepare`."""
        attempt = f"#{self.attempt}" if self.attempt > 1 or self.restart else ""
        restart = f".{self.restart}" if self.restart else ""
        return f"{self.task}{attempt}{restart}" + (f"/{self.container}" if self.container else "")


class Lines(Struct, frozen=True):
    """Whole lines, without line breaks. `stamps`: their times, as the kubelet writes them; empty if the times were
    not kept."""

    start: Start
    texts: Sequence[bytes]
    stamps: Sequence[bytes] = ()

    def rows(self, longest: int = LONGEST_LINE) -> list[tuple[str, str]]:
        """(time, text) of each line, without colours; the time is empty if it was not kept."""
        if not self.texts:
            return []
        texts = plain_lines(b"\n".join(self.texts), longest)
        stamps = [stamp.decode() for stamp in self.stamps] or [""] * len(texts)
        return list(zip(stamps, texts, strict=True))


class Remark(Struct, frozen=True, kw_only=True):
    """A remark of tfyard between the lines. `kind`: a stable word for scripts."""

    kind: str
    text: str
    start: Start | None = None


LogEvent = Lines | Remark


class LogSelection(Struct, frozen=True, kw_only=True):
    """Choice of logs and lines."""

    tasks: tuple[str, ...] = ()
    tail: int | None = None
    since: datetime | None = None
    since_restart: bool = False
    times: bool = False
    """Whether times are shown; a remark says where a log has none."""
    attempt: int | None = None
    restart: int | None = None
    all_attempts: bool = False

    def includes(self, start: Start) -> bool:
        if start.task not in self.tasks or self.attempt not in (None, start.attempt):
            return False
        return self.restart in (None, start.restart)


def chosen(words: Sequence[str], tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks that these words select: a task, a role, or a range such as worker-0..3. No words: all tasks."""
    if not words:
        return tuple(tasks)
    named = {task for word in words for task in _named(word, tasks)}
    return tuple(task for task in tasks if task in named)


def _named(word: str, tasks: Sequence[str]) -> Iterable[str]:
    word = word.lower()
    role, _, numbers = word.rpartition("-")
    first, dots, last = numbers.partition("..")
    if dots and first.isdigit() and last.isdigit():
        selected = [task for task in tasks if _is_within(task, role, int(first), int(last))]
    else:
        selected = [task for task in tasks if word in (task, task.rpartition("-")[0])]
    if not selected:
        roles = list(dict.fromkeys(task.rpartition("-")[0] for task in tasks))
        raise Usage(f"the job has no task or role {word!r}; {did_you_mean(word, [*roles, *tasks[:20]])}")
    return selected


def _is_within(task: str, role: str, first: int, last: int) -> bool:
    name, _, index = task.rpartition("-")
    return name == role and first <= int(index) <= last


def only(words: Sequence[str], tasks: Sequence[str]) -> str:
    """The only task that the words select; without words, the task of a job that has one."""
    selected = chosen(words, tasks)
    if len(selected) == 1:
        return selected[0]
    subject = f"{words[0]} means" if words else "the job has"
    some = ", ".join(selected[:4]) + (", …" if len(selected) > 4 else "")
    raise Usage(f"{subject} {len(selected)} tasks: name one of {some}")


def attempt_of(text: str) -> tuple[int | None, int | None]:
    """Attempt and restart of a text such as `2` or `2.1`, as `describe` numbers them."""
    attempt, dot, restart = text.partition(".")
    if not text:
        return None, None
    if not attempt.isdigit() or int(attempt) < 1 or (dot and not restart.isdigit()):
        raise Usage(f"attempt {text}: must be a number from 1, or N.R for the R-th restart in place of it")
    return int(attempt), int(restart) if dot else None


class Grep:
    """Filters the lines of one program's log by a pattern; a traceback matches or is left out as a whole. It is
    kept until its end is known, so its lines may be returned later than lines that came after it."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._block: list[tuple[bytes, bytes]] = []
        self._is_over = False
        """Whether the block has its exception; a next line belongs to it only if it links to another one."""

    def take(self, texts: Sequence[bytes], stamps: Sequence[bytes] = ()) -> list[tuple[bytes, bytes]]:
        """(text, time) of the matching lines."""
        matches: list[tuple[bytes, bytes]] = []
        for at, text in enumerate(texts):
            matches += self._line(text, stamps[at] if stamps else b"")
        return matches

    def close(self) -> list[tuple[bytes, bytes]]:
        """The matching lines of a traceback that had no end yet."""
        block, self._block, self._is_over = self._block, [], False
        return block if any(self._pattern.search(text) for text, _ in block) else []

    def _line(self, text: bytes, stamp: bytes) -> Iterable[tuple[bytes, bytes]]:
        matches: list[tuple[bytes, bytes]] = []
        if self._block and not self._continues(text):
            matches = self.close()
        if self._block or text.lstrip().startswith(TRACEBACK):
            self._is_over = bool(self._block) and not self._is_inside(text)
            self._block.append((text, stamp))
        elif self._pattern.search(text):
            matches.append((text, stamp))
        return matches

    def _continues(self, text: bytes) -> bool:
        if len(self._block) >= LONGEST_TRACEBACK:
            return False
        return not self._is_over or not text.strip() or text.startswith(LINKS)

    def _is_inside(self, text: bytes) -> bool:
        """Whether a line is before the exception itself, which is not indented as frames are."""
        return not text.strip() or text[:1] in b" \t" or text.startswith((TRACEBACK, *LINKS))


def time_of(stamp: str) -> datetime | None:
    """The time of a line; None: it has none."""
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return time if time.tzinfo else None


def clock(stamp: bytes) -> str:
    """The time of a line, to the millisecond: `2026-11-16T04:00:00.123Z`."""
    return (stamp[:MILLISECOND] + _zone(stamp)).decode()


def relative(stamp: bytes, began: datetime) -> str:
    """The time of a line since the job began: `+00:12:31`."""
    return _relative(stamp[:SECOND] + _zone(stamp), began)


def _zone(stamp: bytes) -> bytes:
    return stamp[SECOND:].lstrip(b".0123456789")


@lru_cache(maxsize=64)
def _relative(second: bytes, began: datetime) -> str:
    passed = int((datetime.fromisoformat(second.decode()) - began).total_seconds())
    minutes, seconds = divmod(abs(passed), 60)
    return f"{'-' if passed < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
