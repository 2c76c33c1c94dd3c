"""Progress of a copy on standard error: a bar on a terminal, else a line every few seconds; then a summary."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tfyard.cli.target import say
from tfyard.file_trees import Copied, CopyProgress
from tfyard.file_trees import shown as in_full
from tfyard.overview.wording import harmless
from tfyard.overview.wording import size as in_words

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


LINE_EVERY = 5.0
"""Seconds between two lines without a terminal."""


@contextmanager
def shown() -> "Iterator[CopyProgress]":
    if not sys.stderr.isatty():
        yield LineProgress()
        return
    # 45 ms, which a copy without a terminal does not need.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar)


def report(copied: "Copied") -> None:
    for text in (*copied.notes, *copied.problems):
        say(text)
    files = f"{copied.files} {'file' if copied.files == 1 else 'files'}"
    same = f"; {copied.same} there already" if copied.same else ""
    say(f"{in_full(copied.to)}: copied {files}, {in_words(copied.size)}{same}")


class LineProgress:
    def __init__(self) -> None:
        self._total = self._done = 0
        self._last = time.monotonic()

    def begin(self, files: int, size: int) -> None:  # noqa: ARG002
        self._total, self._done = size, 0

    def advance(self, size: int) -> None:
        self._done += size
        now = time.monotonic()
        if now - self._last >= LINE_EVERY:
            self._last = now
            say(f"{in_words(self._done)} of {in_words(self._total)}")

    def say(self, text: str) -> None:
        say(text)


class Bar:
    def __init__(self, bar: "RichProgress") -> None:
        self._bar, self._task = bar, bar.add_task("", total=None)

    def begin(self, files: int, size: int) -> None:  # noqa: ARG002
        self._bar.reset(self._task, total=size)

    def advance(self, size: int) -> None:
        self._bar.advance(self._task, size)

    def say(self, text: str) -> None:
        self._bar.console.print(f"tfyard: {harmless(text)}", markup=False, highlight=False)
