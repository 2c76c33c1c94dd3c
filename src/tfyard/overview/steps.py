"""The steps at which the starts of a task began, and how many were lost from one start to the next.

Programs say where they go on (`Begins at step 69`, `Restoring parameters from model.ckpt-69`), or only report
metrics now and then: their first report then comes some steps later.
"""

import re
from typing import Literal

from tfyard.model.run_events import Log, Metric, RunEvent, Started
from tfyard.model.run_record import StartSteps

START_COLUMNS = ("TASK", "START", "BEGAN AT", "REPORTED UP TO", "LOST")
FIRST_LINES = 500
"""Number of lines of a log among which the one is looked for that says where the program begins."""
_VERBS = "begin|start|resum|restor|continu|load|recover"
_TOLD = rf"(?i)\b(?:{_VERBS})\w*\b.*?(?:(?:\b|_)step\b[\s:=#]*|\bckpt-)(\d[\d,]*)"


class Steps:
    """Follows the events of a run."""

    def __init__(self) -> None:
        self._starts: dict[str, list[_StartSoFar]] = {}

    def note(self, event: RunEvent) -> None:
        match event:
            case Started(task, start):
                self._starts.setdefault(task, []).append(_StartSoFar(start))
            case Log(task, text) if task in self._starts:
                self._starts[task][-1].look(text)
            case Metric(task=task) if task in self._starts:
                self._starts[task][-1].report(event)

    def of(self, task: str) -> tuple[StartSteps, ...]:
        """The starts of a task; empty, unless it started more than once and told of steps."""
        starts = self._starts.get(task, [])
        if len(starts) < 2 or all(each.began is None for each in starts):
            return ()
        return tuple(_result(starts[:at], each) for at, each in enumerate(starts))


class _StartSoFar:
    def __init__(self, number: int) -> None:
        self.number = number
        self.unit: Literal["step", "epoch"] = "step"
        self.told: int | None = None
        self.first: int | None = None
        self.reached: int | None = None
        self.interval = 0
        """Largest distance of two reports."""
        self._lines = 0

    @property
    def began(self) -> int | None:
        return self.first if self.told is None else self.told

    def look(self, text: str) -> None:
        if self.began is not None or self._lines > FIRST_LINES:
            return
        self._lines += text.count("\n") + 1
        if match := re.search(_TOLD, text):
            self.told = int(match[1].replace(",", ""))

    def report(self, metric: Metric) -> None:
        unit: Literal["step", "epoch"] = "step" if metric.epoch is None else "epoch"
        at = metric.step if metric.epoch is None else metric.epoch
        if at is None or (self.unit == "epoch" and unit == "step"):
            return
        if unit != self.unit:  # a report before the first epoch
            self.unit, self.told, self.first, self.reached = unit, None, None, None
        if self.first is None:
            self.first = at
        if self.reached is not None:
            self.interval = max(self.interval, at - self.reached)
        self.reached = max(self.reached or 0, at)


def _result(before: list[_StartSoFar], start: _StartSoFar) -> StartSteps:
    return StartSteps(
        start=start.number,
        unit=start.unit,
        began=start.began,
        is_told=start.told is not None,
        reached=start.reached,
        lost=_lost(before, start),
    )


def _lost(before: list[_StartSoFar], start: _StartSoFar) -> int | None:
    reached = [each.reached for each in before if each.reached is not None and each.unit == start.unit]
    if not reached or start.began is None:
        return None
    if start.told is not None:
        return max(0, max(reached) - start.told)
    interval = max(each.interval for each in (*before, start))
    return max(0, max(reached) - start.began + max(1, interval))


def rows(task: str, starts: tuple[StartSteps, ...]) -> list[tuple[str, ...]]:
    """Cells of START_COLUMNS."""
    return [
        (task, str(each.start), _at(each, each.began), _at(each, each.reached), _words(each))
        for each in starts
    ]


def _at(start: StartSteps, number: int | None) -> str:
    return "" if number is None else f"{start.unit} {number:,}"


def _words(start: StartSteps) -> str:
    if start.lost is None:
        return ""
    unit = start.unit if start.lost == 1 else f"{start.unit}s"
    return f"{'' if start.is_told or not start.lost else 'up to '}{start.lost:,} {unit}"
