"""Logs of a job as values, wherever it runs: lines of its programs, and what tfyard says in between."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from tfyard.errors import Usage


class Start(Struct, frozen=True, order=True):
    """One start of a task's program."""

    task: str
    attempt: int = 1
    """Which pod of the task it is, counted from 1."""
    restart: int = 0
    """Which restart in place of that pod's program it is."""

    @property
    def name(self) -> str:
        """`worker-1`; `worker-1#2` in its second pod; `worker-1#2.1` after a restart in that pod."""
        if self.restart:
            return f"{self.task}#{self.attempt}.{self.restart}"
        return f"{self.task}#{self.attempt}" if self.attempt > 1 else self.task


class Lines(Struct, frozen=True):
    """Whole lines, without line breaks. `stamps`: their times, as the kubelet writes them; none of local runs."""

    start: Start
    texts: Sequence[bytes]
    stamps: Sequence[bytes] = ()


class Said(Struct, frozen=True, kw_only=True):
    """By tfyard. `kind`: a stable word for scripts."""

    kind: str
    text: str
    start: Start | None = None


LogEvent = Lines | Said


class Wanted(Struct, frozen=True, kw_only=True):
    """Which logs, and how much of them."""

    tasks: tuple[str, ...] = ()
    tail: int | None = None
    since: datetime | None = None
    since_restart: bool = False
    attempt: int | None = None
    restart: int | None = None
    all_attempts: bool = False

    def includes(self, start: Start) -> bool:
        if start.task not in self.tasks or self.attempt not in (None, start.attempt):
            return False
        return self.restart in (None, start.restart)


def chosen(words: Sequence[str], tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks that these words name: a task, a role, or a range such as worker-0..3. No words: all tasks."""
    if not words:
        return tuple(tasks)
    named = {task for word in words for task in _named(word, tasks)}
    return tuple(task for task in tasks if task in named)


def _named(word: str, tasks: Sequence[str]) -> Iterable[str]:
    word = word.lower()
    role, _, numbers = word.rpartition("-")
    first, dots, last = numbers.partition("..")
    if dots and first.isdigit() and last.isdigit():
        found = [task for task in tasks if _is_within(task, role, int(first), int(last))]
    else:
        found = [task for task in tasks if word in (task, task.rpartition("-")[0])]
    if not found:
        from tfyard.formats.declarations.reading import did_you_mean

        roles = list(dict.fromkeys(task.rpartition("-")[0] for task in tasks))
        raise Usage(f"the job has no task or role {word!r}; {did_you_mean(word, [*roles, *tasks[:20]])}")
    return found


def _is_within(task: str, role: str, first: int, last: int) -> bool:
    name, _, index = task.rpartition("-")
    return name == role and first <= int(index) <= last


def attempt_of(text: str) -> tuple[int | None, int | None]:
    """`2` or `2.1`, as `describe` numbers them."""
    attempt, dot, restart = text.partition(".")
    if not text:
        return None, None
    if not attempt.isdigit() or int(attempt) < 1 or (dot and not restart.isdigit()):
        raise Usage(f"--attempt {text}: must be a number from 1, or N.R for the R-th restart in place of it")
    return int(attempt), int(restart) if dot else None
