"""A cause: why a job waits or has failed, the fix, and the messages that prove it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from tfyard.overview.wording import NAMED_TASKS

Source = Literal["apiserver", "event", "container", "condition", "log"]
TRUST: tuple[Source, ...] = ("apiserver", "event", "container", "condition", "log")
"""Sources, the most certain first: a refusal is certain, a line of a log may mean anything."""
TASKS = "{tasks}"
"""Placeholder in a sentence for the tasks that it is about, until all of them are known."""
S = "{s}"
"""Placeholder for the ending of a verb whose subject is TASKS."""
LONGEST_QUOTE = 500


class Quote(Struct, frozen=True):
    """A message that proves a cause, with its source and time."""

    source: Source
    text: str
    at: datetime | None = None


class Cause(Struct, frozen=True, kw_only=True):
    kind: str
    """A stable word for scripts: image-pull, no-room, taint, …"""
    sentence: str
    fix: str = ""
    """A command, or a line of the job file."""
    tasks: tuple[str, ...] = ()
    evidence: tuple[Quote, ...] = ()
    is_past: bool = False
    """Whether it explains an earlier attempt: the task runs again."""
    is_symptom: bool = False
    """Whether it only follows from another cause, if one is known: a lost peer, no output."""


def named(tasks: Iterable[str]) -> str:
    """Tasks in words, such as: worker-0, worker-1 and 62 more."""
    names = list(dict.fromkeys(tasks))
    if len(names) <= NAMED_TASKS:
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    return f"{', '.join(names[:2])} and {len(names) - 2} more"


def with_tasks(sentence: str, tasks: tuple[str, ...]) -> str:
    return sentence.replace(TASKS, named(tasks)).replace(S, "" if len(set(tasks)) > 1 else "s")


def cut(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The message in one line; those of container runtimes may have several. The middle of a long message is left
    out, because the reason is often at the end."""
    line, half = " ".join(text.split()), longest // 2
    return line if len(line) <= longest else f"{line[: half - 1]}…{line[-half:]}"
