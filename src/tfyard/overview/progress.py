"""How far the training is, from the metrics that its tasks report."""

import math
import re
from collections import deque

from tfyard.model import Job, tensorflow_container
from tfyard.model.run_events import Metric
from tfyard.overview.wording import number
from tfyard.planner.leaders import LEADING_ROLES

KEPT_POINTS = 2_000
RATE_WINDOW = 30.0
LEADING = tuple(role.lower() for role in LEADING_ROLES)
_STEPS = re.compile(r"--?(?:max[_-]|train[_-]|num[_-])?steps[= ](\d+)")


class Progress:
    """From the metrics of all tasks; the step is the furthest that one of them reports."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.step: int | None = None
        self._values: dict[str, dict[str, float]] = {}
        """Task -> its last metrics."""
        self.history: dict[tuple[str, str], list[tuple[int, float]]] = {}
        """(task, metric) -> its curve."""
        self._recent: deque[tuple[float, int]] = deque()

    def note(self, metric: Metric, at: float) -> None:
        """`at`: seconds on any clock."""
        self._values.setdefault(metric.task, {}).update(metric.values)
        self.total = metric.total or self.total
        if metric.step is None:
            return
        if self.step is None or metric.step >= self.step or metric.total:
            self.step = metric.step
            self._remember(metric.step, at)
        for name, value in metric.values.items():
            points = self.history.setdefault((metric.task, name), [])
            points.append((metric.step, value))
            if len(points) > KEPT_POINTS:
                del points[::2]  # every other one: the shape of the curve stays

    def _remember(self, step: int, at: float) -> None:
        if self._recent and step < self._recent[-1][1]:
            self._recent.clear()  # a new epoch, or a resume from an earlier checkpoint
        self._recent.append((at, step))
        while at - self._recent[0][0] > RATE_WINDOW and len(self._recent) > 2:
            self._recent.popleft()

    @property
    def values(self) -> dict[str, float]:
        """The last metrics; of a metric that several tasks report, the leading task's."""
        found: dict[str, float] = {}
        for task in sorted(self._values, key=_rank):
            found |= {name: value for name, value in self._values[task].items() if name not in found}
        return found

    @property
    def rate(self) -> float | None:
        """Steps per second, over the last RATE_WINDOW seconds."""
        if len(self._recent) < 2:
            return None
        (first, start), (last, end) = self._recent[0], self._recent[-1]
        return (end - start) / (last - first) if last > first and end > start else None

    @property
    def seconds_left(self) -> float | None:
        rate = self.rate
        if rate is None or self.total is None or self.step is None:
            return None
        return max(0, self.total - self.step) / rate

    def position(self) -> str:
        if not self.total:
            return f"step {self.step or 0:,}"
        return f"step {min(self.step or 0, self.total):,}/{self.total:,}"

    def metrics(self, most: int | None = None) -> str:
        return "  ".join(f"{name} {number(value)}" for name, value in list(self.values.items())[:most])

    def loss(self) -> tuple[str, list[tuple[int, float]]] | None:
        """(name, curve) to plot: the leading task's loss if there is one, else its first metric."""
        best = min(self.history, key=_curve_rank, default=None)
        return (" ".join(reversed(best)), self.history[best]) if best else None


def _curve_rank(curve: tuple[str, str]) -> tuple[object, ...]:
    task, metric = curve
    return "loss" not in metric and "entropy" not in metric, _rank(task), metric


def _rank(task: str) -> tuple[int, float, str]:
    """The chief's metrics come first, else those of the first worker."""
    role, _, index = task.partition("-")
    rank = LEADING.index(role) if role in LEADING else len(LEADING)
    return rank, int(index) if index.isdigit() else math.inf, task


def total_steps(job: Job) -> int | None:
    """How many steps the program is told to do, if its command line says so."""
    for role in job.roles:
        container = tensorflow_container(role.template)
        line = " ".join(str(p) for p in [*(container.get("command") or []), *(container.get("args") or [])])
        if found := _STEPS.search(line):
            return int(found[1])
    return None
