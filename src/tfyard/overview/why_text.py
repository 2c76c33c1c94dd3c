"""The answer to `why` as lines: the cause, the fix, the evidence with its age, and what else is true."""

import re
from collections.abc import Iterator
from datetime import datetime

from tfyard.overview.cause import Cause
from tfyard.overview.why import UNKNOWN, Answer
from tfyard.overview.wording import duration

_LABELS = {"apiserver": "server"}
"""Labels of sources that people have another word for."""


def lines(answer: Answer, now: datetime) -> Iterator[str]:
    """Lines without control characters: they quote messages of programs and webhooks."""
    return map(_printable, _lines(answer, now))


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(letter for letter in re.sub(r"\x1b\[[0-9;:]*m", "", line) if letter.isprintable())


def _lines(answer: Answer, now: datetime) -> Iterator[str]:
    present = [cause for cause in answer.causes if not cause.is_past]
    yield answer.sentence
    if present:
        yield from _fix(present[0], "")
        yield from _evidence(present[0], now)
        for cause in present[1:]:
            yield from ("", f"also: {cause.sentence}", *_fix(cause, "  "))
    for cause in answer.causes:
        if cause.is_past:
            at = cause.evidence[0].at if cause.evidence else None
            yield f"earlier{_ago(at, now)}: {cause.sentence}"
    if answer.code == UNKNOWN:
        yield f"looked at: {', '.join(answer.looked_at)}"
    yield from (f"could not be read: {text}" for text in answer.unreadable)


def _fix(cause: Cause, indent: str) -> Iterator[str]:
    if cause.fix:
        yield f"{indent}fix: {cause.fix}"


def _evidence(cause: Cause, now: datetime) -> Iterator[str]:
    for quote in cause.evidence:
        yield f"{_LABELS.get(quote.source, quote.source)}{_ago(quote.at, now)}: {quote.text}"


def _ago(at: datetime | None, now: datetime) -> str:
    return f", {duration(max(0.0, (now - at).total_seconds()))} ago" if at else ""
